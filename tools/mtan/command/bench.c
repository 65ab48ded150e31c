/* mtan bench: seconds per epoch of training, next to the paper's and to a roofline prediction for the paper's card.
 *
 * The measurement runs the same training as `mtan train` (training.h), with the published settings. The prediction
 * counts the operations of that training instead of running it (trace.h, roofline.h). Neither includes validation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "../base/json_text.h"
#include "../paper/paper.h"
#include "../model/recipes.h"
#include "../paper/trace.h"
#include "../model/data_sets.h"
#include "../fit/training.h"
#include "../model/shared_options.h"

/* A thread with a smaller share of its core was disturbed: an epoch alone on a machine gets 0.99 and more. */
static const double ALONE = 0.97;

typedef struct bench {
    plan plan;
    int32_t records, measured; /* training records per epoch; how many of them were trained on */
    int32_t epochs, threads;
    double seconds;      /* per epoch of all records; NaN: not measured */
    double share;        /* of one core that the thread had meanwhile; NaN: unknown */
    double host_seconds; /* per epoch, host only: laying out batches, launching kernels that are counted */
    int has_counts;      /* a GPU has kernels for it */
    roofline counted;
} bench;

typedef struct request {
    const options *options;
    const mtan_backend *backend;
    const char *data;  /* NULL: made records */
    const char *rows;  /* --rows: the data set whose rows of the table are run; NULL: configurations by name */
    int predict, card; /* card -1: all */
    int32_t epochs, records;
} request;

/* The paper's time, which it gives in minutes with one digit. */
static double paper_seconds(const char *name) {
    char timed[PAPER_NAME];
    double minutes;
    for (int i = 0; paper_timed(i, "physionet", timed, &minutes); i++)
        if (strcmp(timed, name) == 0) return 60 * minutes;
    return NAN;
}

/* ---- records ---- */

static int load_records(dataset *d, const plan *p, const request *q) {
    const source_input in = option_input(q->options, NULL);
    const data_set *set = p->source.set;
    if (q->data || !set->needs_data) return source_load(d, &p->source, &in);
    if (!set->imitate) return complain("bench: %s needs --data: only PhysioNet's records are made up", p->name), 0;
    set->imitate(d, &p->source);
    return 1;
}

static int prepare(plan *p, dataset *d, split *s, prep *prepared, const request *q) {
    if (!load_records(d, p, q) || !plan_prepare(p, NULL, d, s, prepared, NULL)) return 0;
    arrsetlen(s->part[SPLIT_VALID], 0); /* no validation between epochs */
    if (arrlen(s->part[SPLIT_TRAIN]) > 0) return 1;
    return complain("bench: %s: no record is left for training", p->name), 0;
}

/* ---- counting and measuring ---- */

static int run_epoch(training *t, const char *what, char *error) {
    step_result step;
    int more;
    while ((more = training_step(t, &step, error)) == 1)
        progress("%s: %s epoch %d, batch %d/%d", t->plan->name, what, (int)step.epoch, (int)step.batch,
                 (int)training_batches(t));
    return more == 0;
}

static int count_work(bench *b, const dataset *d, const split *s, char *error) {
    const mtan_backend *backend = trace_open(error);
    training t;
    int good;
    if (!backend) return 0;
    if ((good = training_start(&t, &b->plan, d, s, backend, 1, NULL, error))) {
        trace_reset();
        good = run_epoch(&t, "counting", error);
        trace_read(&b->counted);
        b->host_seconds = t.train_seconds;
        training_stop(&t);
    }
    trace_close();
    return good;
}

/* CPU time of this process, in seconds. */
static double core_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n) {
    qsort(x, n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static int measure(bench *b, const dataset *d, split *s, const request *q, char *error) {
    double *times = tool_calloc((size_t)q->epochs, sizeof *times), all = 0;
    epoch_result result;
    training t;
    int good;
    if (q->records && q->records < b->records) arrsetlen(s->part[SPLIT_TRAIN], (size_t)q->records);
    b->measured = (int32_t)arrlen(s->part[SPLIT_TRAIN]);
    b->epochs = q->epochs;
    if ((good = training_start(&t, &b->plan, d, s, q->backend, option_threads(q->options), NULL, error))) {
        const double before = core_seconds(), start = seconds();
        b->threads = t.pool.threads;
        for (int32_t i = 0; good && i < q->epochs; i++) {
            good = run_epoch(&t, "measuring", error) && training_end_epoch(&t, &result, error) >= 0;
            if (good) times[i] = result.seconds;
        }
        all = seconds() - start;
        if (b->threads == 1 && all > 0) b->share = (core_seconds() - before) / all;
        training_stop(&t);
    }
    if (good) b->seconds = median(times, (size_t)q->epochs) * b->records / b->measured;
    free(times);
    return good;
}

/* Runs one configuration. Returns 1, or 0 with a message printed. */
static int run(bench *b, const char *name, const request *q) {
    char error[512] = "";
    dataset d;
    split s;
    prep prepared;
    int good;
    memset(&d, 0, sizeof d), memset(&s, 0, sizeof s), memset(&prepared, 0, sizeof prepared);
    memset(b, 0, sizeof *b);
    b->seconds = b->share = NAN;
    if (!plan_published(&b->plan, name)) {
        char all[256];
        recipe_list(all, sizeof all);
        return complain("bench: no configuration %s; there are %s", name, all), 0;
    }
    if ((good = prepare(&b->plan, &d, &s, &prepared, q))) {
        b->records = (int32_t)arrlen(s.part[SPLIT_TRAIN]);
        b->has_counts = b->plan.config.architecture == NULL; /* baselines do not run on a GPU */
        if (q->predict && !b->has_counts) good = 0, snprintf(error, sizeof error, "no GPU runs it: nothing to predict");
        good = good && (!b->has_counts || count_work(b, &d, &s, error)) && (q->predict || measure(b, &d, &s, q, error));
        progress_end();
        if (!good) complain("bench: %s: %s", name, error);
    }
    prep_free(&prepared), split_free(&s), dataset_free(&d);
    return good;
}

/* ---- text ---- */

static int card_wanted(const request *q, int card) {
    return q->card < 0 || q->card == card;
}

static void print_seconds(double x, int width) {
    if (isnan(x)) printf(" %*s", width, "-");
    else printf(" %*.*f", width, x < 10 ? 2 : 1, x);
}

static void print_disturbed(const bench *list) {
    for (size_t i = 0; i < arrlenu(list); i++)
        if (list[i].share < ALONE)
            printf("%s had %.0f %% of a core: the machine had other work, measure again.\n", list[i].plan.name,
                   100 * list[i].share);
}

/* For a page of the project: `make epochs` puts it there, so it names no path. Each measured configuration has a
 * line. */
static void print_markdown(const bench *list, const request *q) {
    printf("| configuration | training records | of them measured | s per epoch | the paper's Titan X |\n"
           "|---|---|---|---|---|\n");
    for (size_t i = 0; i < arrlenu(list); i++) {
        const bench *b = &list[i];
        printf("| %s | %d | %d |", b->plan.name, (int)b->records, (int)b->measured);
        print_seconds(b->seconds, 0);
        if (isnan(paper_seconds(b->plan.name))) puts(" | |");
        else printf(" | %g s |\n", paper_seconds(b->plan.name));
    }
    printf("\nOn %s, %d thread%s, as published: the median of %d epoch%s, without validation, scaled to all records.\n",
           mtan_backend_name(q->backend), (int)list[0].threads, list[0].threads == 1 ? "" : "s", (int)q->epochs,
           q->epochs == 1 ? "" : "s");
    print_disturbed(list);
}

static void print_table(const bench *list, const request *q) {
    char how[48] = "";
    if (!q->predict) snprintf(how, sizeof how, "%s, %d thr.", mtan_backend_name(q->backend), (int)list[0].threads);
    printf("seconds per epoch of training as published, on %s\n\n", q->data ? q->data : "made records");
    printf("%-22s %7s %5s %17s %9s   predicted for a Titan X\n", "", "", "", q->predict ? "" : "measured", "paper");
    printf("%-22s %7s %5s %17s %9s", "configuration", "records", "batch", how, "Titan X");
    for (int c = 0; roofline_cards[c].name; c++)
        if (card_wanted(q, c)) printf(" %9s", roofline_cards[c].chip);
    puts("");
    for (size_t i = 0; i < arrlenu(list); i++) {
        const bench *b = &list[i];
        printf("%-22s %7d %5d", b->plan.name, (int)b->records, (int)b->plan.batch);
        print_seconds(b->seconds, 17);
        if (isnan(paper_seconds(b->plan.name))) printf(" %9s", "-");
        else printf(" %9g", paper_seconds(b->plan.name));
        for (int c = 0; roofline_cards[c].name; c++)
            if (card_wanted(q, c))
                print_seconds(b->has_counts ? roofline_total(&b->counted, &roofline_cards[c]) : (double)NAN, 9);
        puts("");
    }
    puts("");
    for (size_t i = 0; i < arrlenu(list); i++)
        if (!q->predict && list[i].measured < list[i].records)
            printf("%s was measured on %d records and scaled to %d.\n", list[i].plan.name, (int)list[i].measured,
                   (int)list[i].records);
    print_disturbed(list);
    if (!q->predict) printf("Measured: the median of %d epoch%s.\n", (int)q->epochs, q->epochs == 1 ? "" : "s");
    puts("The paper has minutes to one digit, and does not say which Titan X.\n"
         "Predicted: a roofline of flops, bytes and launches, never measured on a card.");
}

typedef struct ranked {
    const roofline_entry *entry;
    double seconds;
} ranked;

static int longest_first(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->seconds > y->seconds || x->seconds < y->seconds) return x->seconds > y->seconds ? -1 : 1;
    return strcmp(x->entry->name, y->entry->name);
}

/* Sorts the launched kernels by their time on a card; returns their number. */
static int rank_entries(ranked *list, const roofline *r, const roofline_card *card) {
    int n = 0;
    for (int i = 0; r->entry[i].name; i++)
        if (r->entry[i].launches > 0) {
            list[n].entry = &r->entry[i];
            list[n++].seconds = roofline_seconds(&r->entry[i], card);
        }
    qsort(list, (size_t)n, sizeof *list, longest_first);
    return n;
}

static void print_counts(const roofline_entry *e) {
    printf("%-24s %9.0f %10.3f %10.2f", e->name, e->launches, 1e-9 * e->flops, 1e-6 * (e->read + e->written));
}

static void print_detail(const bench *b, const request *q) {
    const roofline *r = &b->counted;
    const roofline_entry all = roofline_sum(r);
    ranked list[ROOFLINE_ENTRIES];
    const int n = rank_entries(list, r, &roofline_cards[q->card < 0 ? 0 : q->card]);
    printf("\n%s, one epoch of %d records in batches of %d\n\n", b->plan.name, (int)b->records, (int)b->plan.batch);
    printf("%-24s %9s %10s %10s", "kernel", "launches", "GFLOP", "MB");
    for (int c = 0; roofline_cards[c].name; c++)
        if (card_wanted(q, c)) printf(" %7s ms", roofline_cards[c].chip);
    puts("");
    for (int i = 0; i < n; i++) {
        print_counts(list[i].entry);
        for (int c = 0; roofline_cards[c].name; c++)
            if (card_wanted(q, c)) printf(" %10.2f", 1e3 * roofline_seconds(list[i].entry, &roofline_cards[c]));
        puts("");
    }
    printf("%-24s %9.0f %10s %10.2f", "copies", r->copies, "", 1e-6 * (r->sent + r->fetched));
    for (int c = 0; roofline_cards[c].name; c++)
        if (card_wanted(q, c)) printf(" %10.2f", 1e3 * roofline_copy_seconds(r));
    puts("");
    print_counts(&all);
    for (int c = 0; roofline_cards[c].name; c++)
        if (card_wanted(q, c)) printf(" %10.2f", 1e3 * roofline_total(r, &roofline_cards[c]));
    printf("\n%.0f steps of GRUs one after the other, %.0f waits, %.2f MB sent ahead\n"
           "beside it, for batches and calls, this machine's own work: %.2f ms\n",
           all.turns, r->waits, 1e-6 * r->ahead, 1e3 * b->host_seconds);
}

static void print_assumptions(const request *q) {
    puts("\nassumed:");
    for (int c = 0; roofline_cards[c].name; c++)
        if (card_wanted(q, c))
            printf("  %-22s %8.2f TFLOP/s, %.1f GB/s\n", roofline_cards[c].name, 1e-12 * roofline_cards[c].flops,
                   1e-9 * roofline_cards[c].bandwidth);
    for (const roofline_assumption *a = roofline_assumptions; a->name; a++)
        printf("  %-22s %8g %s\n", a->name, a->value, a->help);
    puts("Not in it: the host's own work, and cuBLAS, which makes large products faster.");
}

static void print_text(const bench *list, const request *q) {
    print_table(list, q);
    for (size_t i = 0; q->predict && i < arrlenu(list); i++) print_detail(&list[i], q);
    if (q->predict) print_assumptions(q);
}

/* ---- JSON ---- */

static void put(const char *before, double x) {
    fputs(before, stdout);
    json_number(stdout, x);
}

static void put_text(const char *before, const char *text) {
    fputs(before, stdout);
    json_string(stdout, text);
}

static void json_predictions(double (*seconds_on)(const void *what, const roofline_card *card), const void *what,
                             const request *q) {
    int n = 0;
    fputs("{", stdout);
    for (int c = 0; roofline_cards[c].name; c++)
        if (card_wanted(q, c)) {
            put_text(n++ ? ", " : "", roofline_cards[c].name);
            put(": ", seconds_on(what, &roofline_cards[c]));
        }
    fputs("}", stdout);
}

static double of_entry(const void *entry, const roofline_card *card) {
    return roofline_seconds(entry, card);
}

static double of_all(const void *counted, const roofline_card *card) {
    return roofline_total(counted, card);
}

static void json_entry(const roofline_entry *e, const request *q) {
    put_text("{\"name\": ", e->name);
    put(", \"launches\": ", e->launches), put(", \"flops\": ", e->flops);
    put(", \"busy_flops\": ", e->busy), put(", \"gru_steps\": ", e->turns);
    put(", \"bytes_read\": ", e->read), put(", \"bytes_written\": ", e->written);
    fputs(", \"seconds\": ", stdout);
    json_predictions(of_entry, e, q);
    fputs("}", stdout);
}

/* The work of a GPU per epoch. */
static void json_counts(const bench *b, const request *q) {
    const roofline *r = &b->counted;
    const roofline_entry all = roofline_sum(r);
    int n = 0;
    fputs(",\n  \"predicted_seconds\": ", stdout);
    json_predictions(of_all, r, q);
    put(", \"host_seconds\": ", b->host_seconds);
    put(",\n  \"launches\": ", all.launches), put(", \"flops\": ", all.flops);
    put(", \"bytes_read\": ", all.read), put(", \"bytes_written\": ", all.written);
    put(", \"bytes_sent\": ", r->sent), put(", \"bytes_sent_ahead\": ", r->ahead);
    put(", \"bytes_fetched\": ", r->fetched), put(", \"copies\": ", r->copies), put(", \"waits\": ", r->waits);
    fputs(",\n  \"kernels\": [", stdout);
    for (int i = 0; r->entry[i].name; i++)
        if (r->entry[i].launches > 0) {
            fputs(n++ ? ",\n    " : "\n    ", stdout);
            json_entry(&r->entry[i], q);
        }
    fputs("]", stdout);
}

static void json_row(const bench *b, const request *q) {
    put_text("{\"configuration\": ", b->plan.name);
    put(", \"records\": ", b->records), put(", \"batch\": ", b->plan.batch);
    put_text(", \"backend\": ", q->predict ? NULL : mtan_backend_name(q->backend));
    put(", \"threads\": ", q->predict ? (double)NAN : (double)b->threads);
    put(", \"measured_records\": ", b->measured), put(", \"measured_epochs\": ", b->epochs);
    put(", \"seconds\": ", b->seconds), put(", \"share_of_core\": ", b->share),
        put(", \"paper_seconds\": ", paper_seconds(b->plan.name));
    if (b->has_counts) json_counts(b, q);
    fputs("}", stdout);
}

static void print_json(const bench *list, const request *q) {
    int n = 0;
    put_text("{\"data\": ", q->data ? q->data : "made");
    fputs(", \"cards\": [", stdout);
    for (int c = 0; roofline_cards[c].name; c++)
        if (card_wanted(q, c)) {
            put_text(n++ ? ", {\"name\": " : "{\"name\": ", roofline_cards[c].name);
            put(", \"flops_per_second\": ", roofline_cards[c].flops);
            put(", \"bytes_per_second\": ", roofline_cards[c].bandwidth);
            fputs("}", stdout);
        }
    fputs("],\n\"assumed\": {", stdout);
    for (const roofline_assumption *a = roofline_assumptions; a->name; a++) {
        put_text(a == roofline_assumptions ? "" : ", ", a->name);
        put(": ", a->value);
    }
    fputs("},\n\"runs\": [", stdout);
    for (size_t i = 0; i < arrlenu(list); i++) {
        if (i) fputs(",\n ", stdout);
        json_row(&list[i], q);
    }
    puts("]}");
}

/* ---- the command ---- */

static int read_cards(request *q, const char *name) {
    q->predict = name != NULL;
    q->card = -1;
    if (!name || strcmp(name, "titanx") == 0) return 1;
    for (int c = 0; roofline_cards[c].name; c++)
        if (strcmp(roofline_cards[c].name, name) == 0) return q->card = c, 1;
    return complain("--predict %s: must be titanx, titanx-maxwell or titanx-pascal", name), 0;
}

static int read_request(request *q, const options *o) {
    memset(q, 0, sizeof *q);
    q->options = o;
    q->data = option_text(o, "data", NULL);
    q->epochs = (int32_t)option_integer(o, "epochs", 3);
    q->records = (int32_t)option_integer(o, "records", 0);
    if (option_given(o, "markdown") && option_given(o, "predict"))
        return complain("bench: --markdown is for what is measured, not for --predict"), 0;
    return read_cards(q, option_text(o, "predict", NULL)) && (q->predict || option_backend(o, &q->backend));
}

/* Finds the data set whose rows of the table are run: the one of --data, or the made records of PhysioNet. 0 with a
 * message printed. */
static int read_rows(request *q) {
    const data_set *set = q->data ? data_set_at(q->data) : NULL;
    char name[PAPER_NAME];
    double minutes;
    if (!option_given(q->options, "rows")) return 1;
    if (q->options->arguments) return complain("bench: either --rows or names, not both"), 0;
    q->rows = set ? set->name : q->data ? "" : "physionet";
    if (paper_timed(0, q->rows, name, &minutes)) return 1;
    return complain("bench: --rows: %s holds none of the data sets of the paper's second table", q->data), 0;
}

/* Configuration i of the request: an argument, a row of the paper's second table, or one of the usual two. 0: no
 * more. */
static int wanted(const request *q, int i, char name[PAPER_NAME]) {
    static const char *const usual[] = {"physionet-enc", "physionet-full"};
    const options *o = q->options;
    double minutes;
    if (q->rows) return paper_timed(i, q->rows, name, &minutes);
    if (i >= (o->arguments ? o->arguments : 2)) return 0;
    snprintf(name, PAPER_NAME, "%s", o->arguments ? o->argument[i] : usual[i]);
    return 1;
}

int command_bench(const options *o) {
    char name[PAPER_NAME];
    bench *list = NULL;
    request q;
    int good;
    if (!read_request(&q, o) || !read_rows(&q)) return BAD_USE;
    good = 1;
    for (int i = 0; good && wanted(&q, i, name); i++) {
        bench b;
        if ((good = run(&b, name, &q))) arrput(list, b);
    }
    if (good && option_given(o, "json")) print_json(list, &q);
    else if (good && option_given(o, "markdown")) print_markdown(list, &q);
    else if (good) print_text(list, &q);
    arrfree(list);
    return good ? DONE : BAD_USE;
}
