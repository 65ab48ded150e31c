/* Figures and the page of a report: round ticks, nothing outside its frame, nothing that is no number, markup that is well
 * formed whatever the names are. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/report/figure.h"
#include "../../tools/mtan/report/html.h"
#include "../../tools/mtan/report/report.h"
#include "../../tools/mtan/base/files.h"
#include "../../tools/data/generators.h"

/* ---- what was written ---- */

typedef struct page {
    FILE *out;
    char *text;
    size_t bytes;
} page;

static FILE *page_open(page *p) {
    p->text = NULL;
    p->out = open_memstream(&p->text, &p->bytes);
    if (!p->out) exit(2);
    return p->out;
}

static const char *page_close(page *p) {
    fclose(p->out);
    return p->text;
}

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

/* ---- a checker of markup: tags balance, attributes are quoted, text holds no stray marks, bytes are UTF-8 ---- */

enum { DEEPEST = 64, TAG_MOST = 32 };

static int is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == ':';
}

/* Past the tag that starts at `<`, or NULL. *kind: 0 opens, 1 closes, 2 is whole in itself. */
static const char *read_tag(const char *s, char name[TAG_MOST], int *kind) {
    size_t n = 0;
    *kind = s[1] == '/';
    for (s += 1 + *kind; is_name(*s) && n + 1 < TAG_MOST; s++) name[n++] = *s;
    name[n] = 0;
    while (*s == ' ' && n > 0) {
        for (s++; is_name(*s); s++) {
        }
        if (s[0] != '=' || s[1] != '"') return NULL;
        s += 2 + strcspn(s + 2, "\"<>");
        if (*s++ != '"') return NULL;
    }
    if (*s == '/') *kind = 2, s++;
    return n > 0 && *s == '>' ? s + 1 : NULL;
}

static int is_entity(const char *s) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(s, known[i], strlen(known[i])) == 0) return 1;
    return 0;
}

/* NULL when all is well, else where it is not. */
static const char *find_fault(const char *s) {
    char open[DEEPEST][TAG_MOST], name[TAG_MOST];
    size_t depth = 0;
    while (*s) {
        const char *here = s;
        int kind;
        if (strncmp(s, "<!DOCTYPE html>", 15) == 0) s += 15;
        else if (*s == '<') {
            if (!(s = read_tag(s, name, &kind))) return here;
            if (kind == 0 && depth == DEEPEST) return here;
            if (kind == 0) strcpy(open[depth++], name);
            if (kind == 1 && (depth == 0 || strcmp(open[--depth], name) != 0)) return here;
        } else if ((*s == '>' || (*s == '&' && !is_entity(s))) && !(depth && strcmp(open[depth - 1], "style") == 0))
            return here;
        else s++;
    }
    return depth == 0 ? NULL : s;
}

/* Every byte part of a shortest-form character that may stand in text. */
static int is_utf8(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        const int more = *s < 0x80                 ? 0
                         : *s >= 0xC2 && *s < 0xE0 ? 1
                         : *s >= 0xE0 && *s < 0xF0 ? 2
                         : *s >= 0xF0 && *s < 0xF5 ? 3
                                                   : -1;
        if (more < 0 || (*s < 0x20 && *s != '\n') || *s == 0x7F) return 0;
        if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90)) return 0;
        for (int i = 1; i <= more; i++)
            if ((s[i] & 0xC0) != 0x80) return 0;
        s += more + 1;
    }
    return 1;
}

static int well_formed(const char *text) {
    const char *fault = find_fault(text);
    if (fault) printf("  BAD markup at: %.60s\n", fault);
    return !fault && is_utf8(text);
}

TEST the_checker_finds_faults(void) {
    ASSERT(!find_fault("<!DOCTYPE html><p class=\"a\">1 &lt; 2<br/></p>"));
    ASSERT(find_fault("<p><b></p></b>"));
    ASSERT(find_fault("<p>"));
    ASSERT(find_fault("</p>"));
    ASSERT(find_fault("<p>a & b</p>"));
    ASSERT(find_fault("<p>a > b</p>"));
    ASSERT(find_fault("<p class=a></p>"));
    ASSERT(find_fault("<p class=\"a></p>"));
    ASSERT(find_fault("<p>a < b</p>"));
    ASSERT(is_utf8("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
    ASSERT_FALSE(is_utf8("\xC3"));
    ASSERT_FALSE(is_utf8("\xC0\xAF"));
    ASSERT_FALSE(is_utf8("\xED\xA0\x80"));
    ASSERT_FALSE(is_utf8("a\x01"));
    PASS();
}

/* ---- text ---- */

static const char *escaped(page *p, const char *text, size_t most) {
    html_short(page_open(p), text, most);
    return page_close(p);
}

TEST text_is_escaped(void) {
    static const char *const cases[][2] = {
        {"<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"},
        {"a & \"b\"", "a &amp; &quot;b&quot;"},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"a\tb\x7F", "a\xEF\xBF\xBD"
                     "b\xEF\xBF\xBD"},
        {"\xC0\xBCx", "\xEF\xBF\xBD\xEF\xBF\xBDx"}, /* an overlong < */
        {"\xE0\x80\xBCx", "\xEF\xBF\xBDx"},         /* and a longer one */
        {"\xED\xA0\x80", "\xEF\xBF\xBD"},           /* half of a pair */
        {"\xE2\x80\xAEtxt", "\xEF\xBF\xBDtxt"},     /* turns the direction of writing */
        {"ab\xE2\x82", "ab\xEF\xBF\xBD"},           /* cut off */
        {"\xE2<b>", "\xEF\xBF\xBD&lt;b&gt;"},       /* the mark after a broken character is not swallowed */
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        page p;
        ASSERT_STR_EQ(cases[i][1], escaped(&p, cases[i][0], 100));
        free(p.text);
    }
    PASS();
}

TEST long_text_is_cut_by_characters(void) {
    page p;
    ASSERT_STR_EQ("\xC3\xA9\xC3\xA9\xE2\x80\xA6", escaped(&p, "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3));
    free(p.text);
    ASSERT_STR_EQ("\xC3\xA9\xC3\xA9\xC3\xA9", escaped(&p, "\xC3\xA9\xC3\xA9\xC3\xA9", 3));
    free(p.text);
    ASSERT_EQ_FMT((size_t)3, html_length("\xC3\xA9<\xFF"), "%zu");
    PASS();
}

TEST numbers_read_well(void) {
    char text[32];
    ASSERT_STR_EQ("\xE2\x88\x92"
                  "0.5",
                  html_number(text, -0.5, 4));
    ASSERT_STR_EQ("\xE2\x80\x93", html_number(text, NAN, 4));
    ASSERT_STR_EQ("\xE2\x88\x92\xE2\x88\x9E", html_number(text, -INFINITY, 4));
    ASSERT_STR_EQ("0.834", html_fixed(text, 0.83421, html_decimals(0.83421, 3)));
    ASSERT_STR_EQ("0.0213", html_fixed(text, 0.0213, html_decimals(0.0213, 3)));
    ASSERT_STR_EQ("0.00414", html_fixed(text, 0.004139, html_decimals(0.004139, 3)));
    ASSERT_STR_EQ("1235", html_fixed(text, 1234.5678, html_decimals(1234.5678, 3)));
    ASSERT_STR_EQ("12.3", html_fixed(text, 12.3456, html_decimals(12.3456, 3)));
    html_fixed(text, 1e300, 3);
    ASSERT_STR_EQ("1e+300", text);
    PASS();
}

/* ---- axes ---- */

static int is_round(double step) {
    const double lead = step / pow(10, floor(log10(step) + 1e-9));
    return fabs(lead - 1) < 1e-6 || fabs(lead - 2) < 1e-6 || fabs(lead - 5) < 1e-6;
}

static int ticks_are_good(const axis *a, size_t most) {
    double ticks[AXIS_TICKS_MOST];
    char before[32] = "", label[32];
    const size_t n = axis_ticks(a, most, ticks);
    const double size = a->high - a->low;
    /* one tick at a step means a range below two of it, which is below five of the next smaller step */
    if (n < 2 || n > (most + 1 > 5 ? most + 1 : 5))
        return printf("  BAD %g to %g: %zu ticks of %zu\n", a->low, a->high, n, most), 0;
    for (size_t i = 0; i < n; i++) {
        axis_label(a, ticks, n, i, label);
        if (ticks[i] < a->low - 1e-5 * size || ticks[i] > a->high + 1e-5 * size)
            return printf("  BAD tick %g outside\n", ticks[i]), 0;
        if (i > 0 && (!(ticks[i] > ticks[i - 1]) || !is_round(ticks[i] - ticks[i - 1])))
            return printf("  BAD step from %g to %g\n", ticks[i - 1], ticks[i]), 0;
        if (strcmp(label, before) == 0 || strlen(label) > 16)
            return printf("  BAD label %s of %g\n", label, ticks[i]), 0;
        strcpy(before, label);
    }
    return 1;
}

TEST ticks_are_round_and_labels_differ(void) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        const double size = pow(10, 40 * numpy_uniform(&rng) - 20), middle = size * (4 * numpy_uniform(&rng) - 2);
        axis a = axis_none;
        const double ends[2] = {middle, middle + size * (numpy_uniform(&rng) + 0.01)};
        axis_fit(&a, ends, 2);
        ASSERT(axis_settle(&a, 0.05));
        ASSERT(ticks_are_good(&a, 2 + mtan_mt_next(&rng) % 8));
    }
    PASS();
}

TEST ticks_of_the_unit_axis(void) {
    static const char *const expected[] = {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"};
    double ticks[AXIS_TICKS_MOST];
    char label[32];
    ASSERT_EQ_FMT((size_t)6, axis_ticks(&axis_unit, 6, ticks), "%zu");
    for (size_t i = 0; i < 6; i++) {
        axis_label(&axis_unit, ticks, 6, i, label);
        ASSERT_STR_EQ(expected[i], label);
    }
    PASS();
}

TEST ticks_of_special_axes(void) {
    double ticks[AXIS_TICKS_MOST];
    char label[32];
    axis epochs = {1, 3, 0, 1}, decades = {0.0009, 1200, 1, 0}, small = {0, 0.0041, 0, 0};
    ASSERT_EQ_FMT((size_t)3, axis_ticks(&epochs, 6, ticks), "%zu");
    ASSERT_EQ(2, ticks[1]);
    ASSERT_EQ_FMT((size_t)7, axis_ticks(&decades, 6, ticks), "%zu");
    axis_label(&decades, ticks, 7, 0, label);
    ASSERT_STR_EQ("0.001", label);
    ASSERT_EQ_FMT((size_t)5, axis_ticks(&small, 5, ticks), "%zu");
    ASSERT_EQ_FMT(-3, axis_power(&small), "%d");
    axis_label(&small, ticks, 5, 4, label);
    ASSERT_STR_EQ("4", label);
    PASS();
}

TEST axes_of_nothing(void) {
    const double nothing[4] = {NAN, INFINITY, -INFINITY, NAN}, huge[2] = {-1e308, 1e308}, same[2] = {5, 5},
                 zero[1] = {0};
    axis a = axis_none, b = axis_none, c = axis_none, d = axis_none;
    axis_fit(&a, nothing, 4), axis_fit(&b, huge, 2), axis_fit(&c, same, 2), axis_fit(&d, zero, 1);
    ASSERT_FALSE(axis_settle(&a, 0.1));
    ASSERT_EQ(0, a.low);
    ASSERT_EQ(1, a.high);
    ASSERT_FALSE(axis_settle(&b, 0.1));
    ASSERT(axis_settle(&c, 0.1) && c.low < 5 && c.high > 5);
    ASSERT(axis_settle(&d, 0) && d.low < 0 && d.high > 0);
    PASS();
}

/* ---- frames ---- */

/* Every number inside the quotes after d=, cx= and cy= within the figure. */
static int stays_inside(const char *text, double low, double high) {
    for (const char *s = text; (s = strstr(s, "d=\"")); s++) {
        for (const char *p = s + 3; *p && *p != '"';) {
            char *end;
            double value;
            if (strchr("MLHVhvz ", *p)) p++;
            else if (value = strtod(p, &end), end == p || !(value >= low && value <= high))
                return printf("  BAD path %.40s\n", p), 0;
            else p = end;
        }
    }
    return 1;
}

TEST lines_are_cut_at_the_frame_and_at_gaps(void) {
    const double x[9] = {-1, 0.5, 2, 0.2, NAN, 0.3, 0.6, 0.9, 0.95}, y[9] = {0.5, 0.5, 9, -9, 0, 0.1, INFINITY, 1, 0.2};
    page p;
    frame f = {page_open(&p), 10, 10, 100, 100, {0, 1, 0, 0}, {0, 1, 0, 0}};
    frame_line(&f, "c1", x, y, 9);
    frame_line(&f, "c1", x, y, 1);
    frame_line(&f, "c1", x, y, 0);
    frame_band(&f, "", x, y, y, 9);
    frame_points(&f, "c1", x, y, 9, 3);
    page_close(&p);
    ASSERT(well_formed(p.text));
    ASSERT(stays_inside(p.text, 10, 110));
    /* (-1, 0.5) to (0.5, 0.5) starts at the left border; then out, in and out; after the gap (0.9, 1) to (0.95, 0.2) */
    ASSERT(strstr(p.text, "<path class=\"line\" d=\"M10 60L60 60"));
    ASSERT(strstr(p.text, "M100 10L105 90\"/>"));
    ASSERT_EQ_FMT((size_t)4, count(p.text, "<circle"),
                  "%zu"); /* those of (0.5, 0.5), (0.3, 0.1), (0.9, 1), (0.95, 0.2) */
    ASSERT_EQ_FMT((size_t)3, count(p.text, "class=\"band"), "%zu");
    free(p.text);
    PASS();
}

TEST cells_have_their_shade_and_place(void) {
    const double edge[3] = {0, 1, 2}, value[4] = {0, 0.25, 1, NAN}, same[4] = {1, 1, 0, 0};
    page p;
    frame f = {page_open(&p), 0, 0, 20, 20, {0, 2, 0, 0}, {0, 2, 0, 0}};
    frame_cells(&f, edge, 2, edge, 2, value, 1);
    page_close(&p);
    ASSERT_STR_EQ("<path class=\"cell\" opacity=\"0.500\" d=\"M10 10h10v10h-10z\"/>\n"
                  "<path class=\"cell\" opacity=\"1.000\" d=\"M0 0h10v10h-10z\"/>\n",
                  p.text);
    free(p.text);
    f.out = page_open(&p);
    frame_cells(&f, edge, 2, edge, 2, same, 1);
    frame_cells(&f, edge, 2, edge, 2, same, 0);
    ASSERT_STR_EQ("<path class=\"cell\" opacity=\"1.000\" d=\"M0 10h20v10h-20z\"/>\n", page_close(&p));
    free(p.text);
    PASS();
}

TEST links_join_top_and_bottom(void) {
    const double top[2] = {0, 1}, bottom[2] = {0.5, 1}, weight[4] = {1, 0.5, NAN, 0.01};
    page p;
    frame f = {page_open(&p), 0, 0, 20, 10, {0, 1, 0, 0}, {0, 1, 0, 0}};
    frame_links(&f, top, 2, bottom, 2, weight, 1);
    page_close(&p);
    ASSERT_STR_EQ("<path class=\"link\" opacity=\"0.500\" d=\"M0 0L20 10\"/>\n"
                  "<path class=\"link\" opacity=\"1.000\" d=\"M0 0L10 10\"/>\n",
                  p.text);
    free(p.text);
    PASS();
}

/* ---- the page ---- */

static const char hostile[] = "</b><script>alert(1)</script>\"' onload=x &\x01\xFF\xE2\x80\xAE";

enum { EPOCHS = 6, ROWS = 60, POINTS = 12, KEYS = 5, REFERENCES = 130 };

typedef struct made {
    double epoch[EPOCHS], loss[EPOCHS], p[ROWS * 3], score[ROWS], x[POINTS], y[POINTS], time[KEYS],
        reference[REFERENCES];
    double weight[REFERENCES * KEYS];
    int32_t label[ROWS];
    const char *names[3];
    report_number number;
    report_curve curve;
    report_panel panel;
    report_attention attention;
    report_influence influence;
    report_story story;
    report_label named;
    report_channel channel;
    report_pair pair;
    report_table table;
    report_data data;
} made;

/* classes 2 or 3; every number multiplied by `factor`, which NAN makes nothing at all. */
static void make_report(made *m, const char *name, int32_t classes, double factor) {
    memset(m, 0, sizeof *m);
    for (int i = 0; i < EPOCHS; i++) m->epoch[i] = i + 1, m->loss[i] = factor / (i + 1);
    for (int i = 0; i < ROWS; i++) {
        m->label[i] = i % classes;
        m->score[i] = factor * (i % 7 + i % classes);
        for (int c = 0; c < classes; c++)
            m->p[i * classes + c] = factor * (c == i % classes ? 0.5 : 0.5 / (classes - 1));
    }
    for (int i = 0; i < POINTS; i++) m->x[i] = factor * i, m->y[i] = factor * (i % 3);
    for (int i = 0; i < KEYS; i++) m->time[i] = factor * i;
    for (int i = 0; i < REFERENCES; i++) m->reference[i] = factor * i / 30;
    for (int i = 0; i < REFERENCES * KEYS; i++) m->weight[i] = factor * (i % KEYS) / 10;
    m->names[0] = m->names[1] = m->names[2] = name;
    m->number = (report_number){name, factor, factor, factor, name, name};
    m->curve = (report_curve){name, name, m->loss, -1, 1, NULL};
    m->panel = (report_panel){
        name, name, {m->x, m->y, POINTS}, {m->x, m->y, 3}, {m->x, m->y, POINTS}, {m->x, m->y, POINTS}, m->y};
    m->attention = (report_attention){name, name, m->time, m->reference, m->weight, KEYS, REFERENCES};
    m->influence = (report_influence){name, factor};
    m->story = (report_story){name, name, {m->x, m->y, POINTS}, &m->influence, 1};
    m->named =
        (report_label){name, POINTS, factor, factor, factor, factor, factor, factor, factor, {m->x, m->y, POINTS}};
    m->channel = (report_channel){name, factor, factor, factor};
    m->pair = (report_pair){name, name};
    m->table = (report_table){name, &m->pair, 1};
    m->data = (report_data){name,
                            name,
                            name,
                            &m->number,
                            1,
                            m->epoch,
                            EPOCHS,
                            &m->curve,
                            1,
                            3 * factor,
                            name,
                            0,
                            ROWS,
                            classes,
                            m->p,
                            classes == 2 ? m->score : NULL,
                            m->label,
                            factor,
                            factor,
                            m->names,
                            1,
                            {factor, factor, factor},
                            {factor, factor, factor},
                            POINTS,
                            m->x,
                            m->y,
                            m->y,
                            m->x,
                            0.9,
                            &m->named,
                            1,
                            &m->story,
                            1,
                            &m->channel,
                            1,
                            name,
                            &m->panel,
                            1,
                            1,
                            10,
                            {m->x, m->y, POINTS},
                            {m->x, m->y, POINTS},
                            {m->x, m->y, POINTS},
                            0,
                            NULL,
                            {1, "hours"},
                            &m->attention,
                            1,
                            &m->table,
                            1};
}

static char *written(const report_data *data) {
    page p;
    report_write(page_open(&p), data);
    page_close(&p);
    return p.text;
}

/* The page without its style sheet, where words such as "none" and urls would be allowed. */
static const char *body(const char *text) {
    return strstr(text, "</style>");
}

static int stands_alone(const char *text) {
    static const char *const banned[] = {"<script", "http:", "https:", "src=",      "url(",
                                         "@import", "<link", "<img",   "javascript"};
    for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++)
        if (strstr(text, banned[i])) return printf("  BAD: holds %s\n", banned[i]), 0;
    return 1;
}

TEST hostile_names_stay_text(void) {
    made m;
    for (int32_t classes = 2; classes <= 3; classes++) {
        char *text;
        make_report(&m, hostile, classes, 1);
        text = written(&m.data);
        ASSERT(well_formed(text));
        ASSERT(stands_alone(text));
        ASSERT(strstr(text, "&lt;/b&gt;&lt;script&gt;alert(1)"));
        ASSERT(count(text, "&lt;script&gt;") >= 10);
        free(text);
    }
    PASS();
}

TEST a_page_has_what_the_run_has(void) {
    static const char *const headings[] = {"<h2>Learning",      "<h2>Classification", "<h2>Predictions", "<h2>Labels",
                                           "<h2>Interpolation", "<h2>What mattered",  "<h2>Attention"};
    made m;
    report_data nothing = {0};
    char *full, *bare;
    make_report(&m, "name", 2, 1);
    nothing.best_epoch = NAN;
    full = written(&m.data), bare = written(&nothing);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        ASSERT(strstr(full, headings[i]) && !strstr(bare, headings[i]));
    ASSERT(well_formed(full) && well_formed(bare));
    ASSERT(strstr(full, "name=\"viewport\"") && strstr(full, "prefers-color-scheme:dark") &&
           strstr(full, "@media print"));
    ASSERT(strstr(full, "Content-Security-Policy"));
    ASSERT_EQ_FMT((size_t)0, count(bare, "<svg"), "%zu");
    /* loss; ROC, precision-recall, calibration, confusion, decisions; scatter, errors; a label's ROC; curve, error; course; links,
     * cells */
    ASSERT_EQ_FMT((size_t)14, count(full, "<svg"), "%zu");
    ASSERT(strstr(full, "<p>By epoch. name</p>"));
    free(full), free(bare);
    PASS();
}

TEST what_is_no_number_is_said_not_drawn(void) {
    static const double factors[] = {NAN, INFINITY, 0, 1e308, -1e-308};
    made m;
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        char *text;
        make_report(&m, "name", 2 + (int32_t)i % 2, factors[i]);
        text = written(&m.data);
        ASSERT(well_formed(text));
        ASSERT_FALSE(strstr(body(text), "nan") || strstr(body(text), "inf"));
        ASSERT(stays_inside(text, -400, 400));
        if (isnan(factors[i]))
            ASSERT(strstr(text, "no finite value was logged") && strstr(text, "no finite prediction"));
        free(text);
    }
    PASS();
}

TEST the_same_data_give_the_same_bytes(void) {
    made m;
    char *a, *b;
    make_report(&m, "name", 3, 0.7);
    a = written(&m.data), b = written(&m.data);
    ASSERT(strlen(a) > 5000);
    ASSERT(check_same("page", a, b, strlen(a) + 1));
    free(a), free(b);
    PASS();
}

/* The matrix and the table of 30 classes with long names: all of them are there, nothing leaves its figure, and column numbers
 * have room. */
TEST thirty_classes_fit(void) {
    enum { CLASSES = 30, EACH = 4 };
    static double p[CLASSES * EACH * CLASSES];
    int32_t label[CLASSES * EACH];
    char name[CLASSES][64], row[32], *text;
    const char *matrix;
    const char *names[CLASSES];
    report_data data = {0};
    data.title = data.subtitle = "", data.best_epoch = NAN;
    for (int c = 0; c < CLASSES; c++)
        snprintf(name[c], 64, "a name of a class that is long: %d", c), names[c] = name[c];
    for (int i = 0; i < CLASSES * EACH; i++) {
        label[i] = i % CLASSES;
        for (int c = 0; c < CLASSES; c++) p[i * CLASSES + c] = c == (i < 3 ? 29 : i % CLASSES) ? 0.71 : 0.01;
    }
    data.rows = CLASSES * EACH, data.classes = CLASSES, data.p = p, data.label = label, data.class_names = names;
    text = written(&data);
    ASSERT(well_formed(text) && stays_inside(text, -400, 490));
    for (int c = 0; c < CLASSES; c++) {
        snprintf(row, sizeof row, ">%d a name of a c", c);
        ASSERT(strstr(text, row));
    }
    ASSERT(strstr(text, "Most often confused: a name of a class that is long: 0, taken for a name of a class that is "
                        "long: 29 (1 of 4 rows)."));
    matrix = strstr(text, "aria-label=\"Confusion");
    ASSERT_EQ_FMT((size_t)10, count(matrix, "class=\"tick middle\">"), "%zu"); /* every third column has its number */
    free(text);
    PASS();
}

static size_t count_links(const char *text) {
    size_t n = 0;
    while ((text = strstr(text, "class=\"link\"")) != NULL)
        for (text = strstr(text, " d=\"") + 4; *text != '"'; text++) n += *text == 'M';
    return n;
}

/* 200 observations: a line for the strongest of each reference point; none where all are alike, which is said. */
TEST long_records_have_few_lines(void) {
    enum { LONG = 200, POINTS_ABOVE = 20 };
    static double weight[POINTS_ABOVE * LONG];
    double time[LONG], reference[POINTS_ABOVE];
    report_attention a = {"r", "c", time, reference, weight, LONG, POINTS_ABOVE};
    report_data data = {0};
    data.title = data.subtitle = "", data.best_epoch = NAN, data.attention = &a, data.n_attention = 1;
    for (int i = 0; i < LONG; i++) time[i] = i;
    for (int k = 0; k < POINTS_ABOVE; k++) {
        reference[k] = k * 10;
        for (int i = 0; i < LONG; i++) weight[k * LONG + i] = i >= k && i < k + 5 ? 0.2 : 0;
    }
    char *text = written(&data);
    ASSERT_EQ_FMT((size_t)(3 * POINTS_ABOVE), count_links(text), "%zu");
    free(text);
    for (int i = 0; i < POINTS_ABOVE * LONG; i++) weight[i] = 1.0 / LONG;
    text = written(&data);
    ASSERT_EQ_FMT((size_t)0, count_links(text), "%zu");
    ASSERT(strstr(text, "almost uniform"));
    free(text);
    PASS();
}

/* ---- the command ---- */

/* A folder with an untrained model of the synthetic series and a log whose fields are partly useless. */
static int make_run(char folder[64], char path[96]) {
    static const char log_text[] =
        "epoch,train_loss,val_loss,val_mse,seconds\r\n1,2.5,1.5,1.25,0.5\n2,,nan,<b>,0.5\n\n3,1e999\n";
    const mtan_file_pair pairs[] = {{"mtan.data.kind", "toy"},
                                    {"mtan.data.variant", "smooth"},
                                    {"mtan.plan.name", "<toy>"},
                                    {"mtan.plan.lr", "0.10000000000000001"},
                                    {"mtan.run.best_epoch", "1"}};
    prep p = {.kind = PREP_NONE, .time_scale = {1, 1, 1}, .first = 1, .positive = -1};
    mtan_real weights[4000];
    mtan_config config;
    mtan_model model;
    char error[512] = "";
    strcpy(folder, "build/report-XXXXXX");
    if (!mkdtemp(folder)) return 0;
    if (mtan_config_init(&config, MTAN_FULL, MTAN_CLASSIFY_NONE, 1, 0) != MTAN_OK) return 0;
    config.embed = 8, config.enc_hidden = config.dec_hidden = 4, config.latent = 2, config.ref_points = 6,
    config.mlp_hidden = 4;
    if (mtan_weights_init(&config, weights, 4000, 1) != MTAN_OK ||
        mtan_model_init(&model, &config, weights, 4000) != MTAN_OK)
        return 0;
    snprintf(path, 96, "%s/log.csv", folder);
    if (!file_write(path, log_text, strlen(log_text), error)) return printf("  %s\n", error), 0;
    snprintf(path, 96, "%s/best.safetensors", folder);
    if (!bundle_write(path, &model, NULL, &p, pairs, sizeof pairs / sizeof pairs[0], error))
        return printf("  %s\n", error), 0;
    return 1;
}

static void drop_run(const char *folder) {
    static const char *const files[] = {"log.csv", "best.safetensors", "report.html"};
    char path[96];
    for (size_t i = 0; i < 3; i++) snprintf(path, sizeof path, "%s/%s", folder, files[i]), unlink(path);
    rmdir(folder);
}

static int report_run(const char *run) {
    char *arguments[] = {(char[]){"mtan"},    (char[]){"report"},    NULL,
                         (char[]){"--quiet"}, (char[]){"--threads"}, (char[]){"1"}};
    char name[96];
    options o;
    snprintf(name, sizeof name, "%s", run);
    arguments[2] = name;
    if (!options_parse(&o, 6, arguments)) return -1;
    messages_quiet(1);
    return command_report(&o);
}

TEST a_run_becomes_a_page(void) {
    MAY_BE_LEFT_OUT();
    char folder[64], path[96], *first, *second;
    size_t n, again;
    ASSERT(make_run(folder, path));
    ASSERT_EQ_FMT(DONE, report_run(folder), "%d");
    snprintf(path, sizeof path, "%s/report.html", folder);
    ASSERT(first = slurp(path, &n));
    ASSERT_EQ_FMT(DONE, report_run(folder), "%d");
    ASSERT(second = slurp(path, &again));
    ASSERT_EQ_FMT(n, again, "%zu");
    ASSERT(check_same("page of a run", first, second, n));
    ASSERT(guard_free(second));
    second = tool_calloc(n + 1, 1);
    memcpy(second, first, n);
    ASSERT(well_formed(second));
    ASSERT(strstr(second, "mTAND-Full: &lt;toy&gt;") && strstr(second, "<h2>Interpolation") &&
           strstr(second, "<h2>Attention"));
    ASSERT(strstr(second, "<tr><th>lr</th><td>0.1</td></tr>") &&
           strstr(second, "<tr><th>ref_points</th><td>6</td></tr>"));
    ASSERT(strstr(second, "marks epoch 1 of 3, which was kept.<"));
    ASSERT_EQ_FMT((size_t)12, count(second, "<svg"), "%zu"); /* 3 curves, 3 interpolations, 3 x 2 of attention */
    free(second);
    ASSERT(guard_free(first));
    drop_run(folder);
    PASS();
}

TEST a_run_that_is_not_there_is_refused(void) {
    ASSERT_EQ_FMT(BAD_USE, report_run("build/no-such-run"), "%d");
    PASS();
}

SUITE(figure_suite) {
    RUN_TEST(the_checker_finds_faults);
    RUN_TEST(text_is_escaped);
    RUN_TEST(long_text_is_cut_by_characters);
    RUN_TEST(numbers_read_well);
    RUN_TEST(ticks_are_round_and_labels_differ);
    RUN_TEST(ticks_of_the_unit_axis);
    RUN_TEST(ticks_of_special_axes);
    RUN_TEST(axes_of_nothing);
    RUN_TEST(lines_are_cut_at_the_frame_and_at_gaps);
    RUN_TEST(cells_have_their_shade_and_place);
    RUN_TEST(links_join_top_and_bottom);
    RUN_TEST(hostile_names_stay_text);
    RUN_TEST(a_page_has_what_the_run_has);
    RUN_TEST(what_is_no_number_is_said_not_drawn);
    RUN_TEST(the_same_data_give_the_same_bytes);
    RUN_TEST(thirty_classes_fit);
    RUN_TEST(long_records_have_few_lines);
    RUN_TEST(a_run_becomes_a_page);
    RUN_TEST(a_run_that_is_not_there_is_refused);
}
