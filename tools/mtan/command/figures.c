/* mtan figures: draws the paper's two figures of the synthetic set from trained models as SVG: the models' curves for
 * three test records, and the attention of the first model that has any. It trains nothing. Both figures are composed
 * before either is written. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/text_writer.h"
#include "commands.h"
#include "../options/settings.h"
#include "../model/data_sets.h"
#include "../base/files.h"
#include "../report/pictures.h"
#include "../report/sketch.h"
#include "../report/style.h"
#include "../paper/paper.h"

enum {
    EXAMPLES = 3,
    COLUMN = 300, /* of the page, in its own units */
    ROW = 170,
    LEFT = 46,
    TOP = 30,
    BOTTOM = 36,
    RIGHT = 12,
    CAPTION = 28,
    WORDS_MOST = 160, /* characters of a caption */
    PATH_BYTES = 4096
};

/* The contents of the figures; the arrays are in `owned`. */
typedef struct gallery {
    int models;
    const char *title[FIGURES_MODELS_MOST];
    report_panel panel[FIGURES_MODELS_MOST][EXAMPLES];
    const char *attends; /* the model whose attention is shown; NULL: none yet */
    report_attention attention[EXAMPLES];
    void **owned;
} gallery;

/* ---- contents ---- */

static const char *title_of(const mtan_config *c) {
    const paper_row *row = paper_row_of(2, model_title(c));
    return row ? row->title : model_title(c);
}

/* Can the figures show this model? 0 with a message printed. */
static int suits(const char *model) {
    char error[512] = "";
    bundle b;
    source from;
    int good;
    if (!bundle_read(&b, model, error)) return complain("%s", error), 0;
    if (!source_read(&from, &b, error)) complain("%s: %s", model, error), good = 0;
    else if (!(good = strcmp(from.set->name, "toy") == 0 && interpolates(&b.model.config)))
        complain("%s: not a model of the synthetic set, as mtan train toy-interp and toy-l-ode-ode make them", model);
    bundle_free(&b);
    return good;
}

static int same_points(const report_points *a, const report_points *b) {
    int same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = fabs(a->x[i] - b->x[i]) < 1e-5 && fabs(a->y[i] - b->y[i]) < 1e-5; /* floats, converted back from a
                                                                                  * model's units */
    return same;
}

/* Do all models see the same test records? */
static int same_examples(const gallery *g, int model) {
    for (int i = 0; i < EXAMPLES; i++)
        if (!same_points(&g->panel[0][i].seen, &g->panel[model][i].seen) ||
            !same_points(&g->panel[0][i].truth, &g->panel[model][i].truth))
            return 0;
    return 1;
}

static void add_attention(gallery *g, artist *a, const session *s) {
    for (int i = 0; i < EXAMPLES; i++) g->attention[i] = sketch_attention(&g->owned, a, s, s->positions[i], 0);
    if (g->attention[0].times > 0) g->attends = g->title[g->models];
}

static int add_curves(gallery *g, artist *a, const session *s) {
    int good = 1;
    for (int i = 0; i < EXAMPLES && good; i++) {
        sketch k;
        good = sketch_make(&k, a, s, s->positions[i]);
        if (good) g->panel[g->models][i] = sketch_panel(&g->owned, &k, s, s->positions[i], 0);
        sketch_free(&k);
    }
    return good;
}

static int add_model(gallery *g, const options *o, const char *model) {
    session s;
    artist a;
    int good;
    if (!suits(model) || !session_open(&s, o, model)) return 0;
    g->title[g->models] = title_of(&s.bundle.model.config);
    good = arrlen(s.positions) >= EXAMPLES || (complain("%s: fewer than %d test records", model, EXAMPLES), 0);
    if (good) {
        good = artist_start(&a, &s, SKETCH_SAMPLES);
        if (good && !(good = add_curves(g, &a, &s))) complain("%s: the curves could not be computed", model);
        if (good && !g->attends) add_attention(g, &a, &s);
        artist_end(&a);
    }
    session_close(&s);
    if (good && !(good = same_examples(g, g->models)))
        complain("%s: its test records are not those of the first model", model);
    g->models += good;
    return good;
}

/* ---- drawing ---- */

static frame frame_at(FILE *out, int column, int top, int height) {
    return (frame){out,      LEFT + column * COLUMN, top + TOP, COLUMN - LEFT - RIGHT, height - TOP - BOTTOM, axis_none,
                   axis_none};
}

static void words_at(FILE *out, int top, const char *style, const char *words) {
    const frame f = {out, 0, top, 1, 1, axis_unit, axis_unit};
    frame_text(&f, style, 0, 1, LEFT - 36, 0, words, WORDS_MOST);
}

/* All rows of a column share the same axes. */
static void fit_column(const gallery *g, int column, frame *f) {
    for (int m = 0; m < g->models; m++) picture_curves_fit(f, &g->panel[m][column]);
    axis_settle(&f->x, 0.02), axis_settle(&f->y, 0.06);
}

static void draw_curves(FILE *out, void *context) {
    const gallery *g = context;
    char words[WORDS_MOST];
    style_figure_begin(out, EXAMPLES * COLUMN, (g->models + 1) * ROW + CAPTION,
                       "Three test records of the synthetic set: the truth, and what models make of the points shown");
    for (int row = 0; row <= g->models; row++) {
        words_at(out, row * ROW + 14, "dark", row ? g->title[row - 1] : "Truth");
        for (int i = 0; i < EXAMPLES; i++) {
            frame f = frame_at(out, i, row * ROW, ROW);
            report_panel shown = g->panel[row ? row - 1 : 0][i];
            if (row == 0) shown.mean.n = 0;
            fit_column(g, i, &f);
            frame_axes(&f, row == g->models ? "time" : NULL, "");
            picture_curves(&f, &shown);
        }
    }
    snprintf(words, sizeof words,
             "Points: observed. Dashed: the truth. Line and band: mean and two standard deviations of "
             "%d samples of the posterior.",
             SKETCH_SAMPLES);
    words_at(out, (g->models + 1) * ROW + 18, "", words);
    figure_end(out);
}

static void draw_attention(FILE *out, void *context) {
    const gallery *g = context;
    char words[WORDS_MOST];
    style_figure_begin(out, EXAMPLES * COLUMN, 2 * ROW + CAPTION,
                       "Attention of the encoder's reference points to the observations of three test records");
    for (int i = 0; i < EXAMPLES; i++) {
        heat h = heat_make(&g->attention[i]);
        frame f = frame_at(out, i, 0, 2 * ROW);
        f.x = picture_times(&g->attention[i]), f.y = axis_unit;
        picture_links(&f, &g->attention[i], &h);
        heat_free(&h);
    }
    snprintf(words, sizeof words, "%s: the stronger a line, the larger the weight of an observation.", g->attends);
    words_at(out, 2 * ROW + 18, "", words);
    figure_end(out);
}

/* ---- the command ---- */

static const struct {
    const char *name;
    void (*draw)(FILE *out, void *gallery);
} figures[] = {{"interpolation.svg", draw_curves}, {"attention.svg", draw_attention}};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static int write_figure(const char *folder, const char *name, const char *text, size_t length) {
    char path[PATH_BYTES], error[512];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_BYTES)
        return complain("%s: the path is too long", folder), 0;
    if (!file_write(path, text, length, error)) return complain("%s", error), 0;
    return note("%s", path), 1;
}

static int write_figures(gallery *g, const char *folder) {
    char *text[FIGURES], error[512];
    size_t length[FIGURES];
    int good = folder_make(folder, error) >= 0 || (complain("%s", error), 0);
    for (int i = 0; i < FIGURES; i++) text[i] = text_write(figures[i].draw, g, &length[i]);
    for (int i = 0; i < FIGURES; i++) {
        good = good && write_figure(folder, figures[i].name, text[i], length[i]);
        free(text[i]);
    }
    return good;
}

int command_figures(const options *o) {
    gallery g;
    int good = 1;
    memset(&g, 0, sizeof g);
    for (int i = 0; i < o->arguments && good; i++) good = add_model(&g, o, o->argument[i]);
    if (good && !g.attends) good = 0, complain("none of the models attends to observations: name one of mTAN's");
    good = good && write_figures(&g, option_text(o, "out", "."));
    for (size_t i = 0; i < arrlenu(g.owned); i++) free(g.owned[i]);
    arrfree(g.owned);
    return good ? DONE : BAD_USE;
}
