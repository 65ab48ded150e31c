/* Section of the page of report.h for models that interpolate: curves of a few records, errors and bands. */
#include <math.h>

#include "html.h"
#include "page_parts.h"
#include "pictures.h"
#include "verdict.h"

enum { UNNAMED = 14 }; /* extra height of a frame whose vertical axis has no name */

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
        frame_axes(&f, page_time(name, "time", r), "");
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

void page_curves(FILE *out, const report_data *r) {
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
