/* mtan cv: for each fold, a model that is trained without the fold and measured on it. OUT/fold0, OUT/fold1 and so on
 * are runs of `mtan train`, which are resumed where they stopped. OUT/predictions.csv has for each record the output of
 * the model that was trained without it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "cv_numbers.h"
#include "../options/option_table.h"
#include "rows.h"
#include "train.h"
#include "../model/ensemble.h"
#include "../base/files.h"
#include "../measure/metrics.h"
#include "../model/session.h"
#include "../base/json_text.h"

enum { PATH_ROOM = 4096 };

/* Rows of all folds, one fold after the other: stb_ds arrays. */
typedef struct out_of_fold {
    predictions all;   /* of the pooled rows; its pointers are the arrays below */
    double *p, *score; /* (rows, C); (rows) */
    int32_t *label, *record;
    double *measured[METRICS]; /* (folds) */
    pooled_numbers numbers;    /* of models that predict a number or several labels */
    double *error;             /* (folds) of models that interpolate: the held-out mean squared error */
} out_of_fold;

/* ---- training ---- */

static int fold_path(char path[PATH_ROOM], const options *o, int32_t fold, const char *file) {
    const int n = snprintf(path, PATH_ROOM, "%s/fold%d%s", option_text(o, "out", ""), (int)fold, file);
    return n < PATH_ROOM ? 1 : (complain("%s: the path is too long", option_text(o, "out", "")), 0);
}

/* Runs `mtan train` with the same options, a fold and its folder. --budget is passed only at the start of a run. A run
 * that was interrupted is resumed by the next call. */
static int train_fold(const options *o, int32_t fold, int32_t folds) {
    char path[PATH_ROOM], last[PATH_ROOM], error[512];
    train_watch watch = {.deadline = INFINITY, .again = "the same command"};
    options train = *o;
    int there;
    if (!fold_path(path, o, fold, "") || !fold_path(last, o, fold, "/last.safetensors")) return BAD_USE;
    if ((there = file_exists(last, error)) < 0) return complain("%s", error);
    train.command = command_named("train");
    option_set(&train, "fold", "", fold), option_set(&train, "folds", "", folds);
    if (option_given(o, "ensemble")) option_set(&train, "fit", "all", 0);
    option_set(&train, "out", path, 0), option_set(&train, "resume", there ? "" : NULL, 0);
    if (there) option_set(&train, "budget", NULL, 0);
    note("fold %d of %d: %s", (int)fold + 1, (int)folds, path);
    return train_run(&train, &watch);
}

/* ---- measuring ---- */

static void append_doubles(double **to, const double *from, size_t n) {
    if (n) memcpy(arraddnptr(*to, n), from, n * sizeof *from);
}

static void append_ints(int32_t **to, const int32_t *from, size_t n) {
    if (n) memcpy(arraddnptr(*to, n), from, n * sizeof *from);
}

static double measure(const predictions *p, metric_name name, int32_t draws, interval *range) {
    metric_query q = {metric_table_new(p->p, p->classes == 2 ? p->score : NULL, p->label, p->rows, p->classes), name,
                      NULL};
    const double value = metric_drawn(&q, NULL, p->rows);
    *range = metric_interval(&q, p->rows, p->record, draws);
    metric_table_free(q.table);
    return value;
}

static void write_rows(FILE *file, const session *s, const predictions *p, int32_t fold) {
    const dataset *d = &s->data;
    row_times times = {.of = s};
    int32_t before = -1, nth = 0;
    for (size_t i = 0; i < p->rows; i++) {
        const double *row = p->p + i * (size_t)p->classes;
        int32_t best = 0;
        nth = p->record[i] == before ? nth + 1 : 0, before = p->record[i];
        row_field(file, dataset_name(d, (size_t)p->record[i]));
        row_times_put(file, &times, p->record[i], nth);
        fprintf(file, ",%d,", (int)fold);
        if (p->label[i] != MTAN_UNLABELED) row_field(file, d->classes[p->label[i]]);
        for (int32_t k = 0; k < p->classes; k++) {
            fprintf(file, ",%.9g", row[k]);
            if (row[k] > row[best]) best = k;
        }
        fputc(',', file), row_field(file, d->classes[best]), fputc('\n', file);
    }
}

static void write_header(FILE *file, const dataset *d) {
    fputs(d->label_times ? "record,time,fold,label" : "record,fold,label", file);
    for (size_t k = 0; k < arrlenu(d->classes); k++) {
        const size_t room = strlen(d->classes[k]) + 3;
        char *name = tool_calloc(room, 1);
        snprintf(name, room, "p_%s", d->classes[k]);
        fputc(',', file), row_field(file, name);
        free(name);
    }
    fputs(",predicted\n", file);
}

static int measure_classes(out_of_fold *x, session *s, const options *o, int32_t fold, FILE *file) {
    predictions p;
    interval unused;
    if (!session_predict(s, o, &p)) return 0;
    if (fold == 0) write_header(file, &s->data);
    write_rows(file, s, &p, fold);
    predictions_drop_unlabelled(&p);
    for (int m = 0; m < METRICS; m++) arrput(x->measured[m], measure(&p, (metric_name)m, 0, &unused));
    append_doubles(&x->p, p.p, p.rows * (size_t)p.classes), append_doubles(&x->score, p.score, p.rows);
    append_ints(&x->label, p.label, p.rows), append_ints(&x->record, p.record, p.rows);
    x->all.classes = p.classes;
    predictions_free(&p);
    return 1;
}

static int measure_fold(out_of_fold *x, const options *o, int32_t fold, FILE *file) {
    char model[PATH_ROOM];
    interpolation_error e;
    session s;
    int good;
    if (!fold_path(model, o, fold, "/best.safetensors") || !session_open_times(&s, o, model)) return 0;
    if (s.data.numbers) good = pooled_numbers_add(&x->numbers, &s, o, fold, file);
    else if (!s.source.interpolation) good = measure_classes(x, &s, o, fold, file);
    else if ((good = session_interpolate(&s, o, s.source.observed, &e, NULL))) arrput(x->error, e.held);
    session_close(&s);
    return good;
}

/* ---- output ---- */

static void measure_pooled(out_of_fold *x, int32_t draws, fold_metric **out) {
    x->all.rows = x->all.labelled = arrlenu(x->label);
    x->all.p = x->p, x->all.score = x->score, x->all.label = x->label, x->all.record = x->record;
    for (int i = 0; i < METRICS; i++) {
        const metric_name name = (metric_name)i;
        fold_metric m = {.key = metric_key(name), .title = metric_title(name), .range = {NAN, NAN}};
        fold_spread(x->measured[i], &m.mean, &m.sd);
        m.pooled = measure(&x->all, name, draws, &m.range);
        arrput(*out, m);
    }
}

static void tell_json(const fold_metric *list, int32_t folds, size_t rows) {
    printf("{\"folds\": %d, \"rows\": %zu", (int)folds, rows);
    for (size_t i = 0; i < arrlenu(list); i++) {
        const fold_metric *m = &list[i];
        const double x[] = {m->mean, m->sd, m->pooled, m->range.low, m->range.high};
        static const char *const name[] = {"mean", "sd", "pooled", "low", "high"};
        printf(", \"%s\": {", m->key);
        for (int k = 0; k < 5; k++) printf("%s\"%s\": ", k ? ", " : "", name[k]), json_number(stdout, x[k]);
        putchar('}');
    }
    puts("}");
}

static const char *shown(char text[32], double x, int shares) {
    snprintf(text, 32, shares ? "%.4f" : "%.5g", x);
    return text;
}

/* shares: 1 if the metrics lie roughly between 0 and 1; 0: any size. */
static void tell_text(const fold_metric *list, int32_t folds, size_t rows, int shares) {
    char a[32], b[32], c[32];
    printf("%d folds, %zu labelled rows\n%-18s %10s %10s   %s\n", (int)folds, rows, "", "mean", "sd",
           "all rows together");
    for (size_t i = 0; i < arrlenu(list); i++) {
        const fold_metric *m = &list[i];
        printf("%-18s %10s %10s   %s", m->title, shown(a, m->mean, shares), shown(b, m->sd, shares),
               shown(c, m->pooled, shares));
        if (!isnan(m->range.low))
            printf("   95 %% interval %s to %s", shown(a, m->range.low, shares), shown(b, m->range.high, shares));
        putchar('\n');
    }
}

static void tell(out_of_fold *x, const options *o, int32_t folds) {
    const int32_t draws = (int32_t)option_integer(o, "bootstrap", 1000);
    const int json = option_given(o, "json");
    fold_metric curves = {.key = "mse", .pooled = NAN, .range = {NAN, NAN}}, *list = NULL;
    size_t rows = 0;
    if (x->numbers.record) pooled_numbers_measure(&x->numbers, draws, &list), rows = x->numbers.all.rows;
    else if (!x->error) measure_pooled(x, draws, &list), rows = x->all.rows;
    else fold_spread(x->error, &curves.mean, &curves.sd), arrput(list, curves);
    if (json) tell_json(list, folds, rows);
    else if (!x->error) tell_text(list, folds, rows, !x->numbers.record);
    else
        printf("%d folds: mean squared error of held-out points %.6f, standard deviation %.6f\n", (int)folds,
               curves.mean, curves.sd);
    arrfree(list);
}

static void free_rows(out_of_fold *x) {
    arrfree(x->p), arrfree(x->score), arrfree(x->label), arrfree(x->record), arrfree(x->error);
    for (int m = 0; m < METRICS; m++) arrfree(x->measured[m]);
    pooled_numbers_free(&x->numbers);
}

/* ---- one model from all folds ---- */

/* The split that the file records: all records are training records, since each has trained at least one member. */
static int all_parts(plan *p, const options *o, const char *model, mtan_file_pair **parts) {
    char error[512] = "";
    session s;
    split all = {0};
    int good;
    memset(&s, 0, sizeof s);
    good = session_read_model(&s, o, model) && session_read_data(&s, o);
    if (good && !plan_load(p, &s.bundle, error)) complain("%s: %s", model, error), good = 0;
    if (good) {
        const split_way way = {.kind = SPLIT_ALL, .by_group = 0, .folds = p->source.split.folds};
        p->source.split = way;
        good = split_make(&all, &s.data, &way, error) || (complain("%s", error), 0);
        if (good) source_write_split(&all, &p->source, parts);
    }
    split_free(&all), session_close(&s);
    return good;
}

static int join_folds(const options *o, int32_t folds) {
    char(*members)[PATH_ROOM] = tool_calloc((size_t)folds, sizeof *members), path[PATH_ROOM], error[512] = "";
    mtan_file_pair *parts = NULL;
    plan p;
    int good = snprintf(path, sizeof path, "%s/best.safetensors", option_text(o, "out", "")) < PATH_ROOM;
    for (int32_t k = 0; k < folds && good; k++) good = fold_path(members[k], o, k, "/best.safetensors");
    good = good && all_parts(&p, o, members[0], &parts);
    p.ensemble = folds;
    if (good && !ensemble_join(path, &p, members, folds, parts, error)) complain("%s", error), good = 0;
    if (good) note("the average of the %d models, which all records have trained: %s", (int)folds, path);
    pairs_free(parts, arrlenu(parts));
    arrfree(parts), free(members);
    return good ? DONE : BAD_USE;
}

/* ---- the command ---- */

/* Ends the table of predictions, which was written under another name. Without rows it takes no place. 1, or 0 with a
 * message printed. */
static int keep_predictions(FILE *file, const char *written, const char *path, int has_rows) {
    const int flushed = !has_rows || stream_flush(file), closed = fclose(file) == 0;
    if (!flushed || !closed || (has_rows && rename(written, path) != 0))
        return complain("%s: %s", path, strerror(errno)), 0;
    if (has_rows) note("out-of-fold predictions: %s", path);
    return 1;
}

static int measure_all(const options *o, int32_t folds) {
    char path[PATH_ROOM], written[PATH_ROOM + 8];
    out_of_fold x;
    FILE *file;
    int good = 1;
    memset(&x, 0, sizeof x);
    if (snprintf(path, sizeof path, "%s/predictions.csv", option_text(o, "out", "")) >= PATH_ROOM) return BAD_USE;
    snprintf(written, sizeof written, "%s.part", path);
    if (!(file = fopen(written, "w"))) return complain("%s: %s", path, strerror(errno));
    for (int32_t k = 0; k < folds && good; k++) good = measure_fold(&x, o, k, file);
    if (good) good = keep_predictions(file, written, path, x.label || x.numbers.record);
    else fclose(file);
    remove(written);
    if (good) tell(&x, o, folds);
    free_rows(&x);
    return good ? DONE : BAD_USE;
}

int command_cv(const options *o) {
    const int32_t folds = (int32_t)option_integer(o, "folds", SPLIT_FOLD_COUNT);
    const char *out = option_text(o, "out", NULL);
    char error[512];
    int status;
    if (!out) return complain("--out is missing: the folder of the runs");
    if (!option_given(o, "data")) return complain("--data is missing");
    if (option_given(o, "ensemble") && option_given(o, "budget"))
        return complain("--budget finds other settings for each fold, and --ensemble joins models of the same");
    if (option_given(o, "ensemble") && folds > MTAN_MAX_MEMBERS)
        return complain("--ensemble: a model has at most %d members, and there are %d folds", MTAN_MAX_MEMBERS,
                        (int)folds);
    if (folder_make(out, error) < 0) return complain("%s", error);
    for (int32_t k = 0; k < folds; k++)
        if ((status = train_fold(o, k, folds)) != DONE) return status;
    if ((status = measure_all(o, folds)) != DONE || !option_given(o, "ensemble")) return status;
    return join_folds(o, folds);
}
