/* The page of report.h: sections, captions and the style sheet. It draws with figure.h and counts with metrics.h. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "figure.h"
#include "html.h"
#include "page_parts.h"
#include "pictures.h"
#include "style.h"
#include "verdict.h"
#include "../measure/decisions.h"
#include "../measure/metrics.h"

enum {
    UNNAMED = 14,      /* extra height of a frame whose vertical axis has no name */
    CLASSES_MOST = 48, /* most classes of a readable confusion matrix */
    FEW_CLASSES = 14,  /* up to so many, the matrix has numbers in its cells and a table next to it */
    TEXT_WIDTH = 6,    /* of a character in a figure, on average */
    LABEL_MOST = 17    /* characters of a class name next to its row of the matrix */
};

static const char page_style[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',Arial,sans-serif;-webkit-text-size-adjust:100%}\n"
    "main{max-width:1120px;margin:0 auto;padding:36px 20px 56px}\n"
    "h1{font-size:26px;line-height:1.25;font-weight:650;margin:0 0 4px;overflow-wrap:anywhere}\n"
    "h2{font-size:18px;font-weight:650;margin:44px 0 2px}\n"
    "p{margin:0 0 14px;max-width:72ch;color:var(--soft);overflow-wrap:anywhere}\n"
    ".verdict{color:var(--ink);margin-top:14px}\n"
    ".numbers{display:flex;flex-wrap:wrap;gap:12px;margin:24px 0 0}\n"
    ".numbers div{flex:1 1 150px;max-width:270px;background:var(--card);border:1px solid "
    "var(--edge);border-radius:8px;padding:12px 14px}\n"
    ".numbers dt{font-size:13px;color:var(--soft)}\n"
    ".numbers dd{margin:0;font-size:24px;font-weight:600;font-variant-numeric:tabular-nums;line-height:1.3}\n"
    ".numbers small{display:block;font-size:12px;font-weight:400;color:var(--soft)}\n"
    ".plots{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:16px}\n"
    ".stack{grid-auto-flow:column;grid-template-columns:none;grid-auto-columns:minmax(0,calc((100% - 32px)/3));"
    "grid-template-rows:repeat(var(--rows),auto)}\n"
    ".wide{grid-column:span 2}.full{grid-column:1/-1}\n"
    "figure{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:12px 10px 8px;"
    "break-inside:avoid;min-width:0}\n"
    "figcaption,.legend{display:flex;flex-wrap:wrap;gap:0 12px;align-items:baseline;padding:0 4px 4px;font-size:13px;"
    "color:var(--soft)}\n"
    ".legend{padding:0 0 10px}.after{margin-top:16px}.ramp{width:72px;height:10px;align-self:center;border-radius:2px;"
    "background:linear-gradient(90deg,transparent,var(--c1))}\n"
    "figcaption b{font-size:14px;font-weight:600;color:var(--ink);overflow-wrap:anywhere}\n"
    "figcaption em{flex:0 0 100%;font-style:normal;color:var(--ink)}\n"
    "i{font-style:normal;white-space:nowrap}\n"
    "i::before{content:'';display:inline-block;width:14px;height:0;border-top:2.5px solid;margin-right:5px;"
    "vertical-align:middle;position:relative;top:-1px}\n"
    "i.c0::before{color:var(--c0)}i.c1::before{color:var(--c1)}i.c2::before{color:var(--c2)}"
    "i.truth::before{color:var(--soft);border-top-style:dashed;border-top-width:2px}\n"
    "i.seen::before,i.held::before{width:8px;height:8px;border:1.5px solid var(--ink);border-radius:50%}"
    "i.seen::before{background:var(--ink)}i.held::before{border-color:var(--c2)}\n"
    "i.area::before{height:10px;border:0;background:var(--c1);opacity:.25}\n"
    "svg{display:block;width:100%;height:auto;max-width:520px;margin:0 auto}\n";

static const char table_style[] =
    "table{border-collapse:collapse;width:calc(100% - 8px);margin:0 "
    "4px;font-size:13px;font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--grid);font-weight:400;"
    "vertical-align:top;overflow-wrap:anywhere}\n"
    "th{color:var(--soft)}td.n,th.n{text-align:right;padding:4px 4px 4px 8px;white-space:nowrap;overflow-wrap:normal}"
    "tr:last-child>*{border-bottom:0}\n"
    ".tables{columns:3 300px;column-gap:16px;margin-top:44px}\n"
    ".tables section{break-inside:avoid;margin:0 0 16px;background:var(--card);border:1px solid "
    "var(--edge);border-radius:8px;padding:14px 16px}"
    ".tables h2{margin:0 0 8px;font-size:15px}.pairs th{width:46%}\n"
    "@media(max-width:900px){.plots{grid-template-columns:repeat(2,minmax(0,1fr))}"
    ".stack{grid-auto-columns:minmax(0,1fr)}}\n"
    "@media(max-width:640px){main{padding:24px 14px 40px}.plots{grid-template-columns:minmax(0,1fr)}"
    ".stack{grid-auto-flow:row;grid-template-rows:none;grid-auto-columns:auto}.wide,.full{grid-column:auto}"
    "h1{font-size:22px}}\n"
    "@media print{body{background:#fff;font-size:12px}main{max-width:none;padding:0 1px}"
    "h2{break-after:avoid;margin-top:22px}.numbers{margin-top:14px}.legend,p{break-after:avoid;margin-bottom:6px}"
    "text{font-size:13.5px}.plots{grid-template-columns:repeat(3,minmax(0,1fr));gap:10px}figure{padding:8px 8px 4px}"
    ".tables{columns:3;column-gap:10px;margin-top:22px}.tables section{padding:10px;break-inside:auto;"
    "box-decoration-break:clone;-webkit-box-decoration-break:clone}table{font-size:11px}th,td{padding:2px 6px 2px 0}"
    "figure,.numbers div,.tables section{border-color:#ccc}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}\n";

/* ---- headline numbers ---- */

static void lines(FILE *out, const char *text) {
    char *copy = tool_text(text), *line = copy, *end;
    for (; line; line = end ? end + 1 : NULL) {
        if ((end = strchr(line, '\n')) != NULL) *end = 0;
        fputs("<small>", out), html_text(out, line), fputs("</small>", out);
    }
    free(copy);
}

static void numbers(FILE *out, const report_data *r) {
    char a[32], b[32];
    if (r->n_numbers == 0) return;
    fputs("<dl class=\"numbers\">\n", out);
    for (size_t i = 0; i < r->n_numbers; i++) {
        const report_number *n = r->numbers + i;
        const int decimals = html_decimals(n->value, 3);
        fputs("<div><dt>", out), html_text(out, n->name);
        fprintf(out, "</dt><dd>%s", html_fixed(a, n->value, decimals));
        if (n->low <= n->high)
            fprintf(out, "<small>95 %%: %s\xE2\x80\x93%s</small>", html_fixed(a, n->low, decimals),
                    html_fixed(b, n->high, decimals));
        if (n->note) fputs("<small>", out), html_text(out, n->note), fputs("</small>", out);
        if (n->baseline) lines(out, n->baseline);
        fputs("</dd></div>\n", out);
    }
    fputs("</dl>\n", out);
}

/* ---- learning curves ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The loss of the first epochs can be a thousand times the last. Then the axis becomes logarithmic or, with values
 * below 0, leaves the first epochs out. Returns 1 when some are cut. */
static int fit_losses(axis *a, const report_curve *curves, size_t n, size_t epochs) {
    double *all = NULL, low, high, middle;
    int cut = 0;
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < epochs; i++)
            if (isfinite(curves[c].value[i])) arrput(all, curves[c].value[i]);
    axis_fit(a, all, arrlenu(all));
    if (arrlenu(all) > 0) {
        qsort(all, arrlenu(all), sizeof *all, ascending);
        low = all[0], high = all[arrlenu(all) - 1], middle = all[arrlenu(all) * 9 / 10];
        if (low > 0 && high > 20 * low) a->log = 1;
        else if (middle > low && high - low > 5 * (middle - low)) a->high = low + 1.5 * (middle - low), cut = 1;
    }
    arrfree(all);
    return cut;
}

static double value_at(const report_data *r, const double *value, double epoch) {
    for (size_t i = 0; i < r->epochs; i++)
        if (r->epoch[i] == epoch) return value[i];
    return NAN;
}

/* The verdict is about the validation curve of a plot; the training curve, if drawn, shows overfitting. */
static void curves_verdict(FILE *out, const report_data *r, const report_curve *curves, size_t n) {
    const double *train = n > 1 && !curves[0].better ? curves[0].value : NULL;
    char text[VERDICT_BYTES];
    size_t judged = 0;
    while (judged < n && !curves[judged].better) judged++;
    if (judged == n) {
        page_verdict(out, curves[0].remark ? curves[0].remark : "");
        return;
    }
    page_verdict(out, verdict_learning(text, r->epoch, train, curves[judged].value, r->epochs, curves[judged].better));
}

static void curves_plot(FILE *out, const report_data *r, const report_curve *curves, size_t n) {
    static const char *const colour[4] = {"c1", "c2", "c3", "c0"};
    frame f;
    int cut;
    page_caption(out, curves[0].plot, NULL);
    for (size_t c = 0; n > 1 && c < n; c++) page_key(out, colour[c % 4], curves[c].name);
    curves_verdict(out, r, curves, n);
    f = page_frame(out, HEIGHT, curves[0].plot);
    f.x = f.y = axis_none;
    f.x.whole = 1;
    axis_fit(&f.x, r->epoch, r->epochs);
    cut = fit_losses(&f.y, curves, n, r->epochs);
    if (axis_settle(&f.x, 0) && axis_settle(&f.y, cut ? 0.02 : 0.06)) {
        frame_axes(&f, "epoch", cut ? "first epochs are above the frame" : f.y.log ? "log scale" : "");
        frame_rule(&f, "rule", r->best_epoch, f.y.low, r->best_epoch, f.y.high);
        for (size_t c = 0; c < n; c++) {
            const double at = value_at(r, curves[c].value, r->best_epoch);
            frame_line(&f, colour[c % 4], r->epoch, curves[c].value, r->epochs);
            frame_points(&f, colour[c % 4], &r->best_epoch, &at, 1, 3.5);
        }
    } else frame_message(&f, "no finite value was logged");
    page_plot_end(out);
}

static void learning(FILE *out, const report_data *r) {
    char text[160], epoch[32];
    if (r->n_curves == 0) return;
    snprintf(text, sizeof text, "By epoch.");
    if (isfinite(r->best_epoch))
        snprintf(text, sizeof text,
                 "By epoch. The dashed line marks epoch %s, the best on the validation records, whose weights are used "
                 "below.",
                 html_number(epoch, r->best_epoch, 7));
    page_section(out, "Learning", text);
    fputs("<div class=\"plots\">\n", out);
    for (size_t first = 0, end; first < r->n_curves; first = end) {
        for (end = first + 1; end < r->n_curves && !strcmp(r->curves[end].plot, r->curves[first].plot); end++) {
        }
        curves_plot(out, r, r->curves + first, end - first);
    }
    fputs("</div>\n</section>\n", out);
}

/* ---- ranking and calibration ---- */

static size_t positives(const report_data *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->rows; i++) n += r->label[i] == 1;
    return n;
}

static void roc_plot(FILE *out, const report_data *r) {
    double *x = tool_calloc(r->rows + 1, sizeof *x), *y = tool_calloc(r->rows + 1, sizeof *y);
    const double area = metric_auc(r->score, r->label, r->rows);
    char text[VERDICT_BYTES];
    frame f;
    page_caption(out, "ROC", NULL);
    page_words(out, "area", area);
    page_verdict(out, verdict_ranking(text, area, r->auc_low, r->auc_high));
    f = page_frame(out, WIDTH, "Receiver operating characteristic");
    frame_axes(&f, "false positive rate", "true positive rate");
    frame_rule(&f, "rule", 0, 0, 1, 1);
    frame_line(&f, "c1", x, y, metric_roc(x, y, r->score, r->label, r->rows));
    page_plot_end(out);
    free(x), free(y);
}

static void pr_plot(FILE *out, const report_data *r) {
    double *x = tool_calloc(r->rows + 1, sizeof *x), *y = tool_calloc(r->rows + 1, sizeof *y);
    const double share = (double)positives(r) / (double)r->rows;
    const double average = metric_auprc(r->score, r->label, r->rows);
    char text[VERDICT_BYTES];
    frame f;
    page_caption(out, "Precision\xE2\x80\x93recall", NULL);
    page_words(out, "average", average);
    page_verdict(out, verdict_precision(text, average, share));
    f = page_frame(out, WIDTH, "Precision by recall");
    frame_axes(&f, "recall", "precision");
    frame_rule(&f, "rule", 0, share, 1, share);
    frame_line(&f, "c1", x, y, metric_pr(x, y, r->score, r->label, r->rows));
    page_plot_end(out);
    free(x), free(y);
}

/* Wilson's 95 % interval of a proportion: it stays within 0 and 1 and is valid for few rows. */
static void wilson(double hits, double n, double *low, double *high) {
    const double z = 1.959964, share = hits / n, scale = 1 / (1 + z * z / n);
    const double middle = (share + z * z / (2 * n)) * scale;
    const double half = z * scale * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    *low = middle - half, *high = middle + half;
}

static void reliability_points(const frame *f, const metric_bin *bins) {
    double x[METRIC_BINS], y[METRIC_BINS], low, high;
    size_t n = 0;
    frame_rule(f, "rule", 0, 0, 1, 1);
    for (int k = 0; k < METRIC_BINS; k++) {
        const double count = (double)bins[k].count;
        if (!(count > 0)) continue;
        x[n] = bins[k].confidence, y[n] = bins[k].accuracy;
        wilson(y[n] * count, count, &low, &high);
        frame_rule(f, "range", x[n], low, x[n], high);
        n++;
    }
    frame_line(f, "c1", x, y, n);
    frame_points(f, "c1", x, y, n, 3);
}

static void histogram(const frame *f, const metric_bin *bins, const char *name) {
    frame h = *f;
    double count[METRIC_BINS];
    for (int k = 0; k < METRIC_BINS; k++) count[k] = (double)bins[k].count;
    h.y = axis_none;
    axis_fit(&h.y, count, METRIC_BINS);
    h.y.low = 0;
    if (!(h.y.high > 0)) h.y.high = 1;
    frame_axes(&h, name, "");
    for (int k = 0; k < METRIC_BINS; k++)
        frame_bar(&h, "c1", (k + 0.06) / METRIC_BINS, (k + 0.94) / METRIC_BINS, 0, count[k]);
}

static const char *class_name(const report_data *r, int32_t class, char number[16]) {
    if (r->class_names && r->class_names[class] && *r->class_names[class]) return r->class_names[class];
    snprintf(number, 16, "%d", (int)class);
    return number;
}

/* A class within a sentence: its name, or "class 1". */
static const char *said_class(const report_data *r, int32_t class, char text[48]) {
    char number[16];
    const char *name = class_name(r, class, number);
    snprintf(text, 48, name == number ? "class %s" : "%.40s", name);
    return text;
}

static void calibration_plot(FILE *out, const report_data *r) {
    const int strip = 48, apart = 16; /* the histogram below */
    const int two = r->classes == 2;
    const double mirrored[3] = {-r->intercept[0], -r->intercept[2], -r->intercept[1]};
    const double *intercept = r->positive == 0 ? mirrored : r->intercept; /* of class 1 */
    metric_bin bins[METRIC_BINS];
    char text[VERDICT_BYTES], class[48], share[64], probability[80];
    frame f, below;
    snprintf(share, sizeof share, "share that was %s", two ? said_class(r, 1, class) : "right");
    snprintf(probability, sizeof probability, "%s %s", two ? "predicted probability of" : "probability of",
             two ? class : "the class predicted");
    metric_bins(bins, r->p, r->label, r->rows, r->classes, two ? 1 : -1);
    page_caption(out, "Calibration", NULL);
    page_words(out, "error", metric_calibration(r->p, r->label, r->rows, r->classes));
    page_verdict(out, verdict_calibration(text, bins, two, two ? r->slope : NULL, two ? intercept : NULL));
    f = page_frame(out, WIDTH, "Observed frequency by predicted probability, with the number of rows");
    below = f;
    f.height -= strip + apart;
    below.top = f.top + f.height + apart, below.height = strip;
    frame_axes(&f, NULL, share);
    reliability_points(&f, bins);
    histogram(&below, bins, probability);
    page_plot_end(out);
}

static void ranking(FILE *out, const report_data *r) {
    char text[256], class[48];
    if (r->classes < 2 || r->rows == 0) return;
    if (r->score)
        snprintf(text, sizeof text,
                 "%zu labelled rows, %zu of them %s. Dashed: what chance would give. Bars: 95 %% intervals.", r->rows,
                 positives(r), said_class(r, 1, class));
    else snprintf(text, sizeof text, "%zu labelled rows. Bars: 95 %% intervals.", r->rows);
    page_section(out, "Classification", text);
    fputs("<div class=\"plots\">\n", out);
    if (r->score) roc_plot(out, r), pr_plot(out, r);
    calibration_plot(out, r);
}

/* ---- confusion ---- */

typedef struct confusion {
    int32_t n, classes[CLASSES_MOST]; /* classes that occur or were predicted */
    int64_t *counts;                  /* (C, C) of all classes */
    metric_class *table;              /* (C) */
    int32_t all;                      /* C */
} confusion;

static int64_t cell_of(const confusion *m, int32_t truth, int32_t predicted) {
    return m->counts[(size_t)m->classes[truth] * (size_t)m->all + (size_t)m->classes[predicted]];
}

/* 0: there are too many classes to read. */
static int confusion_make(confusion *m, const report_data *r) {
    const size_t all = (size_t)r->classes;
    memset(m, 0, sizeof *m);
    m->all = r->classes;
    m->counts = tool_calloc(all * all, sizeof *m->counts), m->table = tool_calloc(all, sizeof *m->table);
    metric_confusion(m->counts, r->p, r->label, r->rows, r->classes);
    metric_per_class(m->table, m->counts, r->classes);
    for (int32_t c = 0; c < r->classes; c++) {
        if (m->table[c].support + m->table[c].predicted == 0) continue;
        if (m->n == CLASSES_MOST) return 0;
        m->classes[m->n++] = c;
    }
    return m->n > 0;
}

static void cell_number(const frame *f, const confusion *m, int32_t i, int32_t j, double share) {
    char text[24];
    if (m->n > FEW_CLASSES || cell_of(m, i, j) == 0) return;
    snprintf(text, sizeof text, "%lld", (long long)cell_of(m, i, j));
    frame_text(f, share > 0.3 ? "light middle" : "dark middle", j + 0.5, m->n - i - 0.5, 0, 4, text, sizeof text);
}

/* Rows are labelled with number and name, columns with the number only, as many as fit. */
static void confusion_names(const frame *f, const report_data *r, const confusion *m) {
    const double column = f->width / m->n, wide = 3 * TEXT_WIDTH;
    const int every = (int)ceil(wide / column);
    char number[16], label[160];
    for (int32_t i = 0; i < m->n; i++) {
        snprintf(label, sizeof label, "%d %.140s", (int)m->classes[i],
                 r->class_names ? class_name(r, m->classes[i], number) : "");
        frame_text(f, "dark end", 0, m->n - i - 0.5, -8, 4, label, LABEL_MOST);
        snprintf(number, sizeof number, "%d", (int)m->classes[i]);
        if (i % every == 0) frame_text(f, "tick middle", i + 0.5, m->n, 0, -6, number, sizeof number);
    }
}

static void confusion_verdict(FILE *out, const report_data *r, const confusion *m) {
    int32_t truth = 0, taken = 0;
    char text[VERDICT_BYTES] = "No row is taken for another class.", is[48], as[48];
    int64_t most = 0;
    for (int32_t i = 0; i < m->n; i++)
        for (int32_t j = 0; j < m->n; j++)
            if (i != j && cell_of(m, i, j) > most) most = cell_of(m, i, j), truth = i, taken = j;
    if (most > 0)
        snprintf(text, sizeof text, "Most often confused: %s, taken for %s (%lld of %lld rows).",
                 said_class(r, m->classes[truth], is), said_class(r, m->classes[taken], as), (long long)most,
                 (long long)m->table[m->classes[truth]].support);
    page_verdict(out, text);
}

static void confusion_plot(FILE *out, const report_data *r, const confusion *m) {
    const int label = LABEL_MOST * TEXT_WIDTH + 12, cell = m->n <= 2             ? 70
                                                           : m->n <= 4           ? 48
                                                           : m->n <= FEW_CLASSES ? 28
                                                                                 : 15;
    double edge[CLASSES_MOST + 1], share[CLASSES_MOST * CLASSES_MOST];
    frame f;
    fprintf(out, "<figure%s>\n<figcaption><b>Confusion</b>", m->n > FEW_CLASSES && !r->score ? " class=\"wide\"" : "");
    fputs("<span>rows: truth; columns: predicted</span>", out);
    confusion_verdict(out, r, m);
    f = page_frame(out, TOP + m->n * cell + 14, "Confusion matrix: rows are the truth, columns the class predicted");
    f.left = label, f.width = WIDTH - label - RIGHT, f.height = m->n * cell;
    f.x.high = f.y.high = m->n;
    for (int32_t i = 0; i <= m->n; i++) edge[i] = i;
    for (int32_t i = 0; i < m->n; i++)
        for (int32_t j = 0; j < m->n; j++)
            share[(m->n - 1 - i) * m->n + j] =
                (double)cell_of(m, i, j) / fmax(1, (double)m->table[m->classes[i]].support);
    frame_cells(&f, edge, (size_t)m->n, edge, (size_t)m->n, share, 1);
    confusion_names(&f, r, m);
    for (int32_t i = 0; i < m->n; i++)
        for (int32_t j = 0; j < m->n; j++) cell_number(&f, m, i, j, share[(m->n - 1 - i) * m->n + j]);
    for (int32_t i = 0; i <= m->n; i++) frame_rule(&f, "edge", 0, i, m->n, i), frame_rule(&f, "edge", i, 0, i, m->n);
    page_plot_end(out);
}

static void class_row(FILE *out, const report_data *r, const confusion *m, int32_t i) {
    const metric_class *row = &m->table[m->classes[i]];
    const double cells[3] = {row->precision, row->recall, row->f1};
    char text[32], number[16];
    fprintf(out, "<tr><td>%d ", (int)m->classes[i]);
    html_short(out, class_name(r, m->classes[i], number), NAME_MOST);
    fprintf(out, "</td><td class=\"n\">%lld</td>", (long long)row->support);
    for (int k = 0; k < 3; k++) fprintf(out, "<td class=\"n\">%s</td>", html_fixed(text, cells[k], 3));
    fputs("</tr>\n", out);
}

static void classes_table(FILE *out, const report_data *r, const confusion *m) {
    fprintf(
        out,
        "<figure%s>\n<figcaption><b>By class</b></figcaption>\n<table>\n<tr><th>class</th><th class=\"n\">rows</th>",
        m->n > FEW_CLASSES ? " class=\"full\""
        : r->score         ? " class=\"wide\""
                           : "");
    fputs("<th class=\"n\">precision</th><th class=\"n\">recall</th><th class=\"n\">F1</th></tr>\n", out);
    for (int32_t i = 0; i < m->n; i++) class_row(out, r, m, i);
    fputs("</table>\n</figure>\n", out);
}

/* ---- decisions ---- */

enum { CURVE = 99 }; /* thresholds of the curve, from 0.01 */

/* The probability of the positive class for each row, and whether the row is of that class. The caller frees both. */
static void positive_rows(const report_data *r, double **p, int32_t **is) {
    *p = tool_calloc(r->rows, sizeof **p), *is = tool_calloc(r->rows, sizeof **is);
    for (size_t i = 0; i < r->rows; i++)
        (*p)[i] = r->p[2 * i + (size_t)r->positive], (*is)[i] = r->label[i] < 0 ? -1 : r->label[i] == r->positive;
}

/* The curve for flagging everybody falls without bound; it is cut far below 0. */
static void benefit_plot(FILE *out, const report_data *r, const double *p, const int32_t *is) {
    double x[CURVE], model[CURVE], all[CURVE], none[CURVE];
    frame f;
    for (int i = 0; i < CURVE; i++) {
        const decision d = decision_at((i + 1) / 100.0, p, is, r->rows);
        x[i] = d.threshold, model[i] = d.benefit, all[i] = d.benefit_all, none[i] = 0;
    }
    page_caption(out, "Decision curve", NULL);
    page_key(out, "c1", "model"), page_key(out, "c2", "flag all"), page_key(out, "c0", "flag nobody");
    f = page_frame(out, HEIGHT, "Net benefit by threshold");
    f.x = axis_unit, f.y = axis_none;
    axis_fit(&f.y, model, CURVE), axis_fit(&f.y, all, 1), axis_fit(&f.y, none, 1);
    if (axis_settle(&f.y, 0.1)) {
        f.y.low = fmin(-0.15 * f.y.high, 0);
        frame_axes(&f, "threshold", "net benefit");
        frame_line(&f, "c0", x, none, CURVE), frame_line(&f, "c2", x, all, CURVE),
            frame_line(&f, "c1", x, model, CURVE);
    } else frame_message(&f, "no labelled row");
    page_plot_end(out);
}

/* "slope 1.2 (0.9 to 1.6)" */
static void fitted_words(FILE *out, const char *name, const double x[3]) {
    char a[32], b[32], c[32];
    if (isnan(x[0])) return;
    fprintf(out, "<span>%s %s", name, html_fixed(a, x[0], 2));
    if (x[1] <= x[2]) fprintf(out, " (%s to %s)", html_fixed(b, x[1], 2), html_fixed(c, x[2], 2));
    fputs("</span>", out);
}

static void threshold_table(FILE *out, const report_data *r, const double *p, const int32_t *is) {
    static const char *const heads[] = {"sensitivity", "specificity", "PPV", "NPV", "flagged", "net benefit"};
    static const double at[] = {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9};
    char text[32], number[16];
    fputs("<figure class=\"wide\">\n<figcaption><b>Thresholds</b><span>probability of ", out);
    html_short(out, class_name(r, r->positive, number), NAME_MOST), fputs("</span>", out);
    fitted_words(out, "calibration slope", r->slope), fitted_words(out, "intercept", r->intercept);
    fputs("</figcaption>\n<table>\n<tr><th>threshold</th>", out);
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) fprintf(out, "<th class=\"n\">%s</th>", heads[k]);
    fputs("</tr>\n", out);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        const decision d = decision_at(at[i], p, is, r->rows);
        const double cells[] = {d.sensitivity, d.specificity, d.ppv, d.npv, d.flagged, d.benefit};
        fprintf(out, "<tr><td>%.2f</td>", at[i]);
        for (size_t k = 0; k < sizeof cells / sizeof cells[0]; k++)
            fprintf(out, "<td class=\"n\">%s</td>", html_fixed(text, cells[k], 3));
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</figure>\n", out);
}

static void decisions(FILE *out, const report_data *r) {
    double *p;
    int32_t *is;
    if (r->classes != 2) return;
    positive_rows(r, &p, &is);
    benefit_plot(out, r, p, is), threshold_table(out, r, p, is);
    free(p), free(is);
}

static void classification(FILE *out, const report_data *r) {
    confusion m;
    if (r->classes < 2 || r->rows == 0) return;
    ranking(out, r);
    if (confusion_make(&m, r)) confusion_plot(out, r, &m), classes_table(out, r, &m);
    free(m.counts), free(m.table);
    decisions(out, r);
    fputs("</div>\n</section>\n", out);
}

/* ---- interpolation ---- */

/* "time, hours" */
static const char *time_name(char name[80], const char *what, const report_data *r) {
    const int unit = r->time_unit && *r->time_unit;
    snprintf(name, 80, "%s%s%.40s", what, unit ? ", " : "", unit ? r->time_unit : "");
    return name;
}

/* The panels in a row of the grid have the same channel, but records differ in range, so each panel fits its own
 * axes. */
static void panel_plot(FILE *out, const report_data *r, const report_panel *p) {
    char name[80], text[VERDICT_BYTES];
    frame f;
    page_caption(out, p->record, p->channel);
    page_verdict(out, verdict_panel(text, p));
    f = page_frame(out, HEIGHT - 30, "Interpolation with uncertainty");
    f.top -= UNNAMED, f.height += UNNAMED;
    f.x = f.y = axis_none;
    picture_curves_fit(&f, p);
    if (axis_settle(&f.x, 0.02) & axis_settle(&f.y, 0.06)) {
        frame_axes(&f, time_name(name, "time", r), "");
        picture_curves(&f, p);
    } else frame_message(&f, "no observation, no finite prediction");
    page_plot_end(out);
}

static void panels(FILE *out, const report_data *r) {
    const size_t n = r->panel_columns * r->panel_rows;
    int truth = 0, held = 0;
    for (size_t i = 0; i < n; i++) truth |= r->panels[i].truth.n > 0, held |= r->panels[i].held.n > 0;
    fputs("<div class=\"legend\">", out);
    page_key(out, "seen", "observed");
    if (held) page_key(out, "held", "held out");
    if (truth) page_key(out, "truth", "truth");
    page_key(out, "c1", "mean"), page_key(out, "area",
                                          "\xC2\xB1"
                                          "2 standard deviations");
    fprintf(out, "</div>\n<div class=\"plots stack\" style=\"--rows:%zu\">\n", r->panel_rows);
    for (size_t i = 0; i < n; i++) panel_plot(out, r, r->panels + i);
    fputs("</div>\n", out);
}

static void error_plot(FILE *out, const report_data *r) {
    enum { PARTS = 3 };
    const report_points *parts[PARTS] = {&r->error_all, &r->error_held, &r->error_lines};
    static const char *const colour[PARTS] = {"c1", "c2", "c0"}, *const name[PARTS] = {"all points", "held out",
                                                                                       "straight lines, held out"};
    char text[VERDICT_BYTES];
    frame f;
    page_caption(out, "Error by share observed", NULL);
    for (int i = 0; i < PARTS; i++)
        if (parts[i]->n) page_key(out, colour[i], name[i]);
    page_verdict(out, verdict_errors(text, &r->error_held, &r->error_lines));
    f = page_frame(out, HEIGHT, "Mean squared error by share of time points observed");
    f.x = f.y = axis_none;
    for (int i = 0; i < PARTS; i++) axis_fit(&f.x, parts[i]->x, parts[i]->n), axis_fit(&f.y, parts[i]->y, parts[i]->n);
    f.y.low = fmin(f.y.low, 0);
    if (axis_settle(&f.x, 0.05) & axis_settle(&f.y, 0.05)) {
        f.y.low = 0;
        frame_axes(&f, "% of time points observed", "mean squared error");
        for (int i = 0; i < PARTS; i++) {
            frame_line(&f, colour[i], parts[i]->x, parts[i]->y, parts[i]->n);
            frame_points(&f, colour[i], parts[i]->x, parts[i]->y, parts[i]->n, 3);
        }
    } else frame_message(&f, "nothing was measured");
    page_plot_end(out);
}

static void band_cells(FILE *out, const char *name, const band_row *row) {
    fputs("<tr><td>", out), html_text(out, name);
    fprintf(out, "</td><td class=\"n\">%zu</td><td class=\"n\">%.6f</td><td class=\"n\">%.4f</td>", row->points,
            row->mse, row->log_likelihood);
    for (int k = 0; k < BAND_LEVELS; k++) fprintf(out, "<td class=\"n\">%.1f %%</td>", 100 * row->inside[k]);
    fputs("</tr>\n", out);
}

/* How often held-out points lie inside their bands. */
static void band_plot(FILE *out, const report_data *r) {
    const band_row *row;
    char name[BAND_NAME];
    if (!r->bands || r->bands->all.points == 0) return;
    fputs(
        "<figure class=\"wide\">\n<figcaption><b>Bands</b><span>points that were not shown, by the time to the nearest "
        "observation of their channel that was</span></figcaption>\n<table>\n<tr><th>nearest shown</th>"
        "<th class=\"n\">points</th><th class=\"n\">squared error</th><th class=\"n\">log-likelihood</th>",
        out);
    for (int k = 0; k < BAND_LEVELS; k++) fprintf(out, "<th class=\"n\">in %.0f %%</th>", 100 * band_levels[k]);
    fputs("</tr>\n", out);
    for (int i = 0; (row = bands_row(r->bands, i, &r->band_units, name)) != NULL; i++) band_cells(out, name, row);
    fputs("</table>\n</figure>\n", out);
}

/* What the mean and the deviation of the curves are. */
static void curves_text(char *text, size_t size, const report_data *r) {
    if (r->samples == 0 && r->noisy)
        snprintf(text, size,
                 "The mean is decoded from the mean of the latent state, as it is measured; the deviation "
                 "is that of a single observation, as the model learned it.");
    else if (r->samples > 0)
        snprintf(text, size,
                 "The mean and the standard deviation are those of %d curves, decoded from as many samples of the "
                 "posterior; the noise of a single observation is %s.",
                 r->samples, r->noisy ? "in the deviation, as the model learned it" : "not in them");
    else snprintf(text, size, "The model's curves for a few records.");
}

static void interpolation(FILE *out, const report_data *r) {
    char text[320];
    const int any = r->panel_columns * r->panel_rows > 0, errors = r->error_all.n + r->error_held.n > 0;
    if (!any && !errors) return;
    curves_text(text, sizeof text, r);
    page_section(out, "Interpolation", any ? text : "Error on held-out time points.");
    if (any) panels(out, r);
    if (errors)
        fputs("<div class=\"plots after\">\n", out), error_plot(out, r), band_plot(out, r), fputs("</div>\n", out);
    fputs("</section>\n", out);
}

/* ---- single records, channels ---- */

static void course_plot(FILE *out, const report_data *r, const report_story *s) {
    char name[80];
    frame f;
    page_caption(out, s->record, NULL);
    fputs("<span>probability of ", out), html_short(out, s->of, NAME_MOST), fputs("</span>", out);
    f = page_frame(out, HEIGHT - 50, "Probability after each time");
    f.x = axis_none, f.y = axis_unit;
    axis_fit(&f.x, s->course.x, s->course.n);
    if (axis_settle(&f.x, 0.02)) {
        frame_axes(&f, time_name(name, "time", r), "");
        frame_line(&f, "c1", s->course.x, s->course.y, s->course.n);
        frame_points(&f, "c1", s->course.x, s->course.y, s->course.n, s->course.n > 60 ? 1.4 : 2.6);
    } else frame_message(&f, "no observation");
    figure_end(out);
}

static void story(FILE *out, const report_data *r, const report_story *s) {
    char text[32];
    course_plot(out, r, s);
    fputs("<table>\n<tr><th>observation</th><th class=\"n\">change</th></tr>\n", out);
    if (!s->told) fputs("<tr><td>too many to leave out each: mtan explain</td><td></td></tr>\n", out);
    for (size_t i = 0; i < s->n_told; i++) {
        fputs("<tr><td>", out), html_short(out, s->told[i].what, NAME_MOST);
        fprintf(out, "</td><td class=\"n\">%s%s</td></tr>\n", s->told[i].change > 0 ? "+" : "",
                html_number(text, s->told[i].change, 3));
    }
    fputs("</table>\n</figure>\n", out);
}

static void channels_table(FILE *out, const report_data *r) {
    char a[32], b[32], c[32];
    if (r->n_channels == 0) return;
    fprintf(out,
            "<figure>\n<figcaption><b>Channels</b><span>what the %s loses when a channel is exchanged between "
            "records</span></figcaption>\n<table>\n",
            r->classes == 2 ? "AUC" : "accuracy");
    for (size_t i = 0; i < r->n_channels; i++) {
        const report_channel *x = &r->channels[i];
        fputs("<tr><td>", out), html_short(out, x->name, NAME_MOST);
        fprintf(out, "</td><td class=\"n\">%s", html_fixed(a, x->drop, 3));
        if (x->low <= x->high) fprintf(out, " (%s to %s)", html_fixed(b, x->low, 3), html_fixed(c, x->high, 3));
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n</figure>\n", out);
}

static void influences(FILE *out, const report_data *r) {
    if (r->n_stories + r->n_channels == 0) return;
    page_section(out, "What mattered",
                 "How the prediction of a few records comes about as observations arrive, and the observations that "
                 "change it most: the log-odds with all of them, minus those without this one.");
    fputs("<div class=\"plots\">\n", out);
    for (size_t i = 0; i < r->n_stories; i++) story(out, r, &r->stories[i]);
    channels_table(out, r);
    fputs("</div>\n</section>\n", out);
}

/* ---- attention ---- */

/* Borders of cells around n ascending places: half way between neighbours, and as far outwards at the ends. */
static double *cell_borders(const double *place, size_t n) {
    double *edge = tool_calloc(n + 1, sizeof *edge);
    for (size_t i = 1; i < n; i++) edge[i] = (place[i - 1] + place[i]) / 2;
    edge[0] = n > 1 ? 2 * place[0] - edge[1] : place[0] - 0.5;
    edge[n] = n > 1 ? 2 * place[n - 1] - edge[n - 1] : place[0] + 0.5;
    return edge;
}

static void links_plot(FILE *out, const report_attention *a, const heat *h, axis time) {
    char text[VERDICT_BYTES];
    frame f;
    page_caption(out, a->record, a->channel);
    if (!picture_links_all(a, h)) fprintf(out, "<span>the %d strongest lines of each point</span>", PICTURE_STRONGEST);
    page_verdict(out, verdict_attention(text, a));
    f = page_frame(out, 170, "Reference points above, observations below, joined by attention");
    f.x = time;
    picture_links(&f, a, h);
    page_plot_end(out);
}

static void heat_plot(FILE *out, const report_data *r, const report_attention *a, const heat *h, axis time) {
    double *x = cell_borders(a->time, a->times), *y = cell_borders(h->place, h->rows);
    char text[32], name[80];
    frame f;
    for (size_t i = 0; i <= a->times; i++) x[i] = fmin(fmax(x[i], time.low), time.high);
    fprintf(out, "<figure>\n<figcaption><span>weight 0</span><span class=\"ramp\"></span><span>%s</span>",
            html_number(text, h->most, 2));
    f = page_frame(out, 300, "Attention of every reference point to every observation");
    f.x = time, f.y = axis_none;
    axis_fit(&f.y, y, h->rows + 1);
    axis_settle(&f.y, 0);
    frame_axes(&f, time_name(name, "time of the observation", r), "time of the reference point");
    frame_cells(&f, x, a->times, y, h->rows, h->weight, h->most);
    page_plot_end(out);
    free(x), free(y);
}

static void attention_column(FILE *out, const report_data *r, const report_attention *a) {
    axis time;
    heat h;
    if (a->times == 0 || a->references == 0) return;
    time = picture_times(a);
    h = heat_make(a);
    links_plot(out, a, &h, time);
    heat_plot(out, r, a, &h, time);
    heat_free(&h);
}

static void attention(FILE *out, const report_data *r) {
    if (r->n_attention == 0) return;
    page_section(out, "Attention",
                 "How the encoder reads a record: every reference point takes a weighted mean of the observations of a "
                 "channel. The stronger the line or the cell, the larger the weight.");
    fputs("<div class=\"plots stack\" style=\"--rows:2\">\n", out);
    for (size_t i = 0; i < r->n_attention; i++) attention_column(out, r, r->attention + i);
    fputs("</div>\n</section>\n", out);
}

/* ---- tables, and the whole ---- */

static void tables(FILE *out, const report_data *r) {
    if (r->n_tables == 0) return;
    fputs("<div class=\"tables\">\n", out);
    for (size_t t = 0; t < r->n_tables; t++) {
        fputs("<section>\n<h2>", out), html_text(out, r->tables[t].title);
        fputs("</h2>\n<table class=\"pairs\">\n", out);
        for (size_t i = 0; i < r->tables[t].n; i++) {
            fputs("<tr><th>", out), html_short(out, r->tables[t].pairs[i].key, 80);
            fputs("</th><td>", out), html_short(out, r->tables[t].pairs[i].value, 400);
            fputs("</td></tr>\n", out);
        }
        fputs("</table>\n</section>\n", out);
    }
    fputs("</div>\n", out);
}

void report_write(FILE *out, const report_data *r) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'\"/>\n<title>",
          out);
    html_text(out, r->title);
    fputs("</title>\n<style>\n", out), style_colours(out);
    fprintf(out, "%s%s%s</style>\n</head>\n<body>\n<main>\n<h1>", page_style, style_drawing, table_style);
    html_text(out, r->title);
    fputs("</h1>\n<p>", out), html_text(out, r->subtitle), fputs("</p>\n", out);
    if (r->verdict && *r->verdict)
        fputs("<p class=\"verdict\">", out), html_text(out, r->verdict), fputs("</p>\n", out);
    numbers(out, r);
    learning(out, r);
    classification(out, r);
    page_number(out, r);
    page_labels(out, r);
    interpolation(out, r);
    influences(out, r);
    attention(out, r);
    tables(out, r);
    fputs("</main>\n</body>\n</html>\n", out);
}
