/* See page_parts.h. */
#include "page_parts.h"

#include "html.h"

void page_section(FILE *out, const char *title, const char *words) {
    fprintf(out, "<section>\n<h2>%s</h2>\n<p>", title);
    html_text(out, words);
    fputs("</p>\n", out);
}

/* The caption's name: a record and a channel, or only a title. */
void page_caption(FILE *out, const char *name, const char *more) {
    fputs("<figure>\n<figcaption><b>", out);
    html_short(out, name, NAME_MOST);
    if (more && *more) fputs(" \xC2\xB7 ", out), html_short(out, more, NAME_MOST);
    fputs("</b>", out);
}

void page_key(FILE *out, const char *kind, const char *name) {
    fprintf(out, "<i class=\"%s\">", kind);
    html_short(out, name, NAME_MOST);
    fputs("</i>", out);
}

void page_words(FILE *out, const char *name, double value) {
    char text[32];
    fprintf(out, "<span>%s %s</span>", name, html_fixed(text, value, html_decimals(value, 3)));
}

/* The verdict on the picture, on a line of its own. */
void page_verdict(FILE *out, const char *text) {
    if (!*text) return;
    fputs("<em>", out), html_text(out, text), fputs("</em>", out);
}

frame page_frame(FILE *out, int height, const char *description) {
    frame f = {out, LEFT, TOP, WIDTH - LEFT - RIGHT, height - TOP - BOTTOM, {0, 1, 0, 0}, {0, 1, 0, 0}};
    fputs("</figcaption>\n", out);
    figure_begin(out, WIDTH, height, description);
    return f;
}

void page_plot_end(FILE *out) {
    figure_end(out);
    fputs("</figure>\n", out);
}

const char *page_time(char name[80], const char *what, const report_data *r) {
    const int unit = r->time_unit && *r->time_unit;
    snprintf(name, 80, "%s%s%.40s", what, unit ? ", " : "", unit ? r->time_unit : "");
    return name;
}
