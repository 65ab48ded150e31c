/* Section of the page of report.h for models of classes: ranking, calibration, confusion and decisions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"
#include "../measure/decisions.h"
#include "../measure/metrics.h"
#include "html.h"
#include "page_parts.h"
#include "verdict.h"

enum {
    CLASSES_MOST = 48, /* most classes of a readable confusion matrix */
    FEW_CLASSES = 14,  /* up to so many, the matrix has numbers in its cells and a table next to it */
    TEXT_WIDTH = 6,    /* of a character in a figure, on average */
    LABEL_MOST = 17    /* characters of a class name next to its row of the matrix */
};

/* ---- ranking and calibration ---- */

static size_t positives(const report_data *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->rows; i++) n += r->label[i] == 1;
    return n;
}

static size_t rarer(const report_data *r) {
    const size_t of_1 = positives(r), of_0 = r->rows - of_1;
    return of_1 < of_0 ? of_1 : of_0;
}

static void roc_plot(FILE *out, const report_data *r) {
    double *x = tool_calloc(r->rows + 1, sizeof *x), *y = tool_calloc(r->rows + 1, sizeof *y);
    const double area = metric_auc(r->score, r->label, r->rows);
    char text[VERDICT_BYTES];
    frame f;
    page_caption(out, "ROC", NULL);
    page_words(out, "area", area);
    page_verdict(out, verdict_ranking(text, area, r->auc_low, r->auc_high, rarer(r)));
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
    page_verdict(out, verdict_precision(text, average, share, rarer(r)));
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

void page_classes(FILE *out, const report_data *r) {
    confusion m;
    if (r->classes < 2 || r->rows == 0) return;
    ranking(out, r);
    if (confusion_make(&m, r)) confusion_plot(out, r, &m), classes_table(out, r, &m);
    free(m.counts), free(m.table);
    decisions(out, r);
    fputs("</div>\n</section>\n", out);
}
