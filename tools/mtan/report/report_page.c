/* The page of report.h: its head, learning curves, single records, attention and tables. The sections on results stand
 * in files of their own (page_parts.h). */
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

static const report_curve *choosing_curve(const report_curve *curves, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (curves[i].chooses) return &curves[i];
    return NULL;
}

/* Where the log lacks the measure that chose the epoch, the epoch itself tells whether it improved to the end. */
static learning_end end_of_learning(const report_data *r) {
    const report_curve *c = choosing_curve(r->curves, r->n_curves);
    const double late = r->epochs > 0 ? r->epoch[r->epochs - 1] - (double)r->epochs / 5 : NAN;
    const int improved = c ? verdict_improves(r->epoch, c->value, r->epochs, c->better) : !(r->best_epoch <= late);
    return r->schedule_ended ? END_SCHEDULE : improved ? END_OPEN : END_CHOICE;
}

/* The curve of a plot that is judged: the one that chose the epoch, else the first of validation. */
static const report_curve *judged_curve(const report_curve *curves, size_t n) {
    const report_curve *c = choosing_curve(curves, n);
    for (size_t i = 0; !c && i < n; i++)
        if (curves[i].better) c = &curves[i];
    return c;
}

/* The verdict is about the validation curve of a plot; the training curve, if drawn, shows overfitting. */
static void curves_verdict(FILE *out, const report_data *r, const report_curve *curves, size_t n) {
    const double *train = n > 1 && !curves[0].better ? curves[0].value : NULL;
    const report_curve *c = judged_curve(curves, n);
    char text[VERDICT_BYTES];
    if (!c) page_verdict(out, curves[0].remark ? curves[0].remark : "");
    else page_verdict(out, verdict_learning(text, r->epoch, train, c->value, r->epochs, c->better, end_of_learning(r)));
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
    char text[640];
    if (r->n_curves == 0) return;
    snprintf(text, sizeof text, "By epoch.%s%s", r->chosen ? " " : "", r->chosen ? r->chosen : "");
    page_section(out, "Learning", text);
    fputs("<div class=\"plots\">\n", out);
    for (size_t first = 0, end; first < r->n_curves; first = end) {
        for (end = first + 1; end < r->n_curves && !strcmp(r->curves[end].plot, r->curves[first].plot); end++) {
        }
        curves_plot(out, r, r->curves + first, end - first);
    }
    fputs("</div>\n</section>\n", out);
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
        frame_axes(&f, page_time(name, "time", r), "");
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
    frame_axes(&f, page_time(name, "time of the observation", r), "time of the reference point");
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
    fprintf(out, "%s%s%s</style>\n</head>\n<body>\n<main>\n<h1>", style_page, style_drawing, style_tables);
    html_text(out, r->title);
    fputs("</h1>\n<p>", out), html_text(out, r->subtitle), fputs("</p>\n", out);
    if (r->verdict && *r->verdict)
        fputs("<p class=\"verdict\">", out), html_text(out, r->verdict), fputs("</p>\n", out);
    numbers(out, r);
    learning(out, r);
    page_classes(out, r);
    page_number(out, r);
    page_labels(out, r);
    page_curves(out, r);
    influences(out, r);
    attention(out, r);
    tables(out, r);
    fputs("</main>\n</body>\n</html>\n", out);
}
