/* Sections of the page of report.h for models of a number and of several labels. */
#include <math.h>
#include <stdlib.h>

#include "../../data/memory.h"
#include "html.h"
#include "page_parts.h"
#include "verdict.h"

/* ---- a number ---- */

enum { POINTS_MOST = 1500 }; /* most points in a picture; with more rows every second or third is drawn */

static size_t drawn_every(const report_data *r) {
    return r->n_predicted / POINTS_MOST + 1;
}

static double inside(const report_data *r) {
    double n = 0;
    for (size_t i = 0; r->low && i < r->n_predicted; i++) n += r->truth[i] >= r->low[i] && r->truth[i] <= r->high[i];
    return r->low ? n / (double)r->n_predicted : NAN;
}

static double explained(const report_data *r) {
    double mean = 0, squares = 0, around = 0;
    for (size_t i = 0; i < r->n_predicted; i++) mean += r->truth[i] / (double)r->n_predicted;
    for (size_t i = 0; i < r->n_predicted; i++) {
        squares += (r->predicted[i] - r->truth[i]) * (r->predicted[i] - r->truth[i]);
        around += (r->truth[i] - mean) * (r->truth[i] - mean);
    }
    return around > 0 ? 1 - squares / around : NAN;
}

static void scatter_plot(FILE *out, const report_data *r) {
    char text[VERDICT_BYTES];
    frame f;
    page_caption(out, "Predicted and true", NULL);
    if (r->low) page_key(out, "area", "interval"), page_key(out, "c1", "prediction");
    page_verdict(out, r->low ? verdict_coverage(text, inside(r), r->n_predicted, r->interval)
                             : verdict_explained(text, explained(r)));
    f = page_frame(out, WIDTH, "Predicted by true number");
    f.x = f.y = axis_none;
    axis_fit(&f.x, r->truth, r->n_predicted), axis_fit(&f.y, r->predicted, r->n_predicted);
    if (r->low) axis_fit(&f.y, r->low, r->n_predicted), axis_fit(&f.y, r->high, r->n_predicted);
    if (axis_settle(&f.x, 0.04) & axis_settle(&f.y, 0.04)) {
        const double from = fmax(f.x.low, f.y.low), to = fmin(f.x.high, f.y.high);
        frame_axes(&f, "true", "predicted");
        for (size_t i = 0; r->low && i < r->n_predicted; i += drawn_every(r))
            frame_rule(&f, "range", r->truth[i], r->low[i], r->truth[i], r->high[i]);
        for (size_t i = 0; i < r->n_predicted; i += drawn_every(r))
            frame_points(&f, "c1", &r->truth[i], &r->predicted[i], 1, 2.2);
        if (from < to) frame_rule(&f, "rule", from, from, to, to);
    } else frame_message(&f, "no finite prediction");
    page_plot_end(out);
}

static void residual_plot(FILE *out, const report_data *r) {
    double *off = tool_calloc(r->n_predicted, sizeof *off);
    char text[VERDICT_BYTES];
    frame f;
    for (size_t i = 0; i < r->n_predicted; i++) off[i] = r->predicted[i] - r->truth[i];
    page_caption(out, "Errors", NULL);
    page_verdict(out, verdict_residuals(text, r->predicted, r->truth, r->n_predicted));
    f = page_frame(out, WIDTH, "Predicted minus true number by prediction");
    f.x = f.y = axis_none;
    axis_fit(&f.x, r->predicted, r->n_predicted), axis_fit(&f.y, off, r->n_predicted);
    if (axis_settle(&f.x, 0.04) & axis_settle(&f.y, 0.04)) {
        frame_axes(&f, "predicted", "predicted minus true");
        for (size_t i = 0; i < r->n_predicted; i += drawn_every(r))
            frame_points(&f, "c1", &r->predicted[i], &off[i], 1, 2.2);
        frame_rule(&f, "rule", f.x.low, 0, f.x.high, 0);
    } else frame_message(&f, "no finite prediction");
    page_plot_end(out);
    free(off);
}

void page_number(FILE *out, const report_data *r) {
    char text[160];
    if (r->n_predicted == 0) return;
    snprintf(text, sizeof text, "%zu rows with a number. Dashed: where predictions would be right.", r->n_predicted);
    page_section(out, "Predictions", text);
    fputs("<div class=\"plots\">\n", out);
    scatter_plot(out, r), residual_plot(out, r);
    fputs("</div>\n</section>\n", out);
}

/* ---- labels ---- */

enum { CURVES_MOST = 8 }; /* the first labels have a picture each; the table has all */

static void label_plot(FILE *out, const report_label *l) {
    const double rarer = (double)l->known * fmin(l->share, 1 - l->share);
    char text[VERDICT_BYTES];
    frame f;
    page_caption(out, "ROC", l->name);
    page_words(out, "area", l->auc);
    page_verdict(out, verdict_ranking(text, l->auc, l->auc_low, l->auc_high, rarer > 0 ? (size_t)(rarer + 0.5) : 0));
    f = page_frame(out, WIDTH, "Receiver operating characteristic");
    if (l->roc.n > 0) {
        frame_axes(&f, "false positive rate", "true positive rate");
        frame_rule(&f, "rule", 0, 0, 1, 1);
        frame_line(&f, "c1", l->roc.x, l->roc.y, l->roc.n);
    } else frame_message(&f, "always true, or never");
    page_plot_end(out);
}

static void range_cell(FILE *out, double x, double low, double high) {
    char a[32], b[32], c[32];
    fprintf(out, "<td class=\"n\">%s", html_fixed(a, x, 3));
    if (low <= high) fprintf(out, " (%s to %s)", html_fixed(b, low, 3), html_fixed(c, high, 3));
    fputs("</td>", out);
}

static void label_table(FILE *out, const report_data *r) {
    char text[32];
    fputs("<figure class=\"full\">\n<figcaption><b>By label</b></figcaption>\n<table>\n<tr><th>label</th><th "
          "class=\"n\">known</th><th class=\"n\">true</th><th class=\"n\">AUC</th><th class=\"n\">average "
          "precision</th></tr>\n",
          out);
    for (size_t i = 0; i < r->n_labels; i++) {
        const report_label *l = &r->labels[i];
        fputs("<tr><td>", out), html_short(out, l->name, NAME_MOST);
        fprintf(out, "</td><td class=\"n\">%zu</td><td class=\"n\">%s%s</td>", l->known,
                html_fixed(text, 100 * l->share, 1), isnan(l->share) ? "" : " %");
        range_cell(out, l->auc, l->auc_low, l->auc_high);
        range_cell(out, l->average, l->average_low, l->average_high);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</figure>\n", out);
}

void page_labels(FILE *out, const report_data *r) {
    if (r->n_labels == 0) return;
    page_section(out, "Labels", "Each is true or not, whatever the others are. Dashed: what chance would give.");
    fputs("<div class=\"plots\">\n", out);
    for (size_t i = 0; i < r->n_labels && i < CURVES_MOST; i++) label_plot(out, &r->labels[i]);
    label_table(out, r);
    fputs("</div>\n</section>\n", out);
}
