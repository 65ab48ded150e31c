/* See style.h. */
#include "style.h"

#include <string.h>

#include "html.h"

static const struct {
    const char *name, *paper, *dark;
} colours[] = {{"bg", "#fbfbf9", "#14171a"},   {"card", "#fff", "#1b1f23"},    {"ink", "#1d2228", "#e4e7ea"},
               {"soft", "#5d6670", "#9aa4ae"}, {"grid", "#e4e5e2", "#2b3136"}, {"edge", "#dcdeda", "#2e343a"},
               {"c1", "#1f5fa6", "#74b2f2"},   {"c2", "#c2501c", "#f2935c"},   {"c3", "#2f7d5b", "#6cc79e"},
               {"c0", "#8b939b", "#7b858f"}};
enum { COLOURS = sizeof colours / sizeof colours[0] };

const char style_drawing[] =
    "text{fill:var(--soft);font-size:11px;font-variant-numeric:tabular-nums}text.dark{fill:var(--ink)}"
    ".middle{text-anchor:middle}.end{text-anchor:end}text.light{fill:var(--card)}\n"
    ".grid{stroke:var(--grid);stroke-width:1;fill:none}.axis{stroke:var(--c0);stroke-width:1;fill:none}\n"
    ".line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}\n"
    ".c0 .line{stroke:var(--c0)}.c1 .line{stroke:var(--c1)}.c2 .line{stroke:var(--c2)}.c3 .line{stroke:var(--c3)}\n"
    ".rule .line{stroke:var(--c0);stroke-width:1;stroke-dasharray:3 3}"
    ".truth .line{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:5 3}.range .line{stroke:var(--c1);"
    "stroke-width:1.25;opacity:.6}\n"
    ".band{fill:var(--c1);opacity:.2}.bar,.cell{fill:var(--c1)}.bar{opacity:.55}.cell{shape-rendering:crispEdges}\n"
    ".edge .line{stroke:var(--card);stroke-width:1.5}\n"
    ".link{stroke:var(--c1);stroke-width:.9;fill:none}\n"
    "g.c0 circle{fill:var(--c0)}g.c1 circle{fill:var(--c1)}g.c2 circle{fill:var(--c2)}"
    "g.seen circle{fill:var(--ink);stroke:var(--card);stroke-width:1}"
    "g.held circle{fill:var(--card);stroke:var(--c2);stroke-width:1.5}\n";

static void put_colours(FILE *out, int dark) {
    fputs(":root{", out);
    for (int i = 0; i < COLOURS; i++)
        fprintf(out, "%s--%s:%s", i ? ";" : "", colours[i].name, dark ? colours[i].dark : colours[i].paper);
    fputs("}", out);
}

void style_colours(FILE *out) {
    put_colours(out, 0);
    fputs("\n@media screen and (prefers-color-scheme:dark){", out);
    put_colours(out, 1);
    fputs("}\n", out);
}

/* The colour of a name that ends with a bracket; an unknown name is black. */
static const char *paper_colour(const char *name) {
    const size_t length = strcspn(name, ")");
    for (int i = 0; i < COLOURS; i++)
        if (strlen(colours[i].name) == length && memcmp(colours[i].name, name, length) == 0) return colours[i].paper;
    return "#000";
}

void style_on_paper(FILE *out, const char *rules) {
    static const char named[] = "var(--";
    const char *at;
    for (; (at = strstr(rules, named)) != NULL; rules = strchr(at, ')') + 1) {
        fwrite(rules, 1, (size_t)(at - rules), out);
        fputs(paper_colour(at + strlen(named)), out);
    }
    fputs(rules, out);
}

void style_figure_begin(FILE *out, int width, int height, const char *description) {
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>",
            width, height, width, height);
    html_text(out, description);
    fputs("</title>\n<style>\nsvg{font-family:system-ui,Roboto,'Helvetica Neue',Arial,sans-serif}\n", out);
    style_on_paper(out, style_drawing);
    fputs("</style>\n<rect width=\"100%\" height=\"100%\" fill=\"", out);
    fprintf(out, "%s\"/>\n", paper_colour("card)"));
}
