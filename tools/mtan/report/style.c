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

const char style_page[] =
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
    ".numbers dt::first-letter,.tables h2::first-letter{text-transform:uppercase}\n"
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

const char style_tables[] =
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
