/* See cases.h. */
#define _POSIX_C_SOURCE 200809L
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PACKED "../data/events.csv.gz"

enum { RECORDS = 24, PATIENTS = 10 };

#define DATA "--data ../data/events.csv --labels ../data/labels.csv "
#define SMALL "--batch 6 --embed 4 --enc-hidden 4 --ref-points 4 --threads 1 --schedule constant --warmup 0 "
#define TRAIN(epochs) "train own --model enc " DATA "--out run --lr 0.02 --head-hidden 4 " SMALL "--epochs " epochs " "
#define MODEL "../data/run/best.safetensors "
#define CURVES "../data/curves"
#define OLD "old\n"

/* clang-format off */
#define CASE(name, line, status, old, run) {name, line, status, old, run, {NULL, 0}, {0, NULL, NULL, 0, {NULL, 0}}, {0}}
fault_case fault_cases[] = {
    CASE("train", TRAIN("3"), 0, NULL, FROM_START),
    CASE("resume", TRAIN("3") "--resume", 0, NULL, FROM_MIDDLE),
    CASE("resume longer", TRAIN("4") "--resume", 0, NULL, FROM_END),
    CASE("train twice", TRAIN("3"), 2, NULL, FROM_END),
    CASE("predict", "predict " MODEL "--data ../data/events.csv --threads 2", 0, NULL, NO_RUN),
    CASE("predict gzip", "predict " MODEL "--data " PACKED " --threads 1", 0, NULL, NO_RUN),
    CASE("eval", "eval " MODEL DATA "--bootstrap 10 --threads 2", 0, NULL, NO_RUN),
    CASE("report", "report ../data/run " DATA "-o page.html --bootstrap 10 --threads 1", 0, "page.html", NO_RUN),
    CASE("report card", "report ../data/run " DATA "--card -o card.md --bootstrap 10 --threads 1", 0, "card.md", NO_RUN),
    CASE("report curves", "report " CURVES " --data ../data/events.csv -o page.html --bootstrap 10 --threads 1", 0,
         "page.html", NO_RUN),
    CASE("convert", "convert ../data/checkpoint.pt out.safetensors", 0, "out.safetensors", NO_RUN),
    CASE("convert back", "convert " MODEL "out.pt", 0, "out.pt", NO_RUN),
    CASE("quantize", "quantize " MODEL "small.safetensors " DATA "--threads 1", 0, "small.safetensors", NO_RUN),
    CASE("table",
         "table 2 --data ../data --out runs --results r.tsv --only rnn-dt --preset correct --seeds 0 --epochs 2 "
         "--budget 5 --threads 1",
         0, NULL, NO_RUN),
    CASE("interpolate", "interpolate " CURVES "/best.safetensors --data ../data/events.csv --at 0:10:5 --threads 1", 0,
         NULL, NO_RUN),
    CASE("stream", "stream " MODEL "--data ../data/events.csv", 0, NULL, NO_RUN),
    CASE("export", "export " MODEL "--c -o model.h", 0, "model.h", NO_RUN),
    CASE(NULL, NULL, 0, NULL, NO_RUN)};
/* clang-format on */

/* ---- data ---- */

/* The same numbers everywhere. */
static unsigned draw(unsigned most) {
    static uint64_t state = 2021;
    state = state * 16807 % 2147483647;
    return (unsigned)(state % most);
}

static FILE *create(const place *p, const char *name) {
    FILE *file = fopen(place_path(p, name), "w");
    if (!file) fail_system(name);
    return file;
}

static void done(FILE *file) {
    if (ferror(file) | fclose(file)) fail_system("data");
}

/* Two classes at two levels. */
static void write_events(const place *p) {
    FILE *events = create(p, "data/events.csv"), *labels = create(p, "data/labels.csv");
    fputs("record,time,channel,value\n", events), fputs("record,label\n", labels);
    for (unsigned r = 0; r < RECORDS; r++) {
        for (unsigned k = 0, n = 8 + draw(4); k < n; k++)
            fprintf(events, "r%u,%u.%u,%s,%u\n", r, k, draw(10), k % 2 ? "pulse" : "heat", 20 * (r % 2) + draw(10));
        fprintf(labels, "r%u,%s\n", r, r % 2 ? "up" : "down");
    }
    done(events), done(labels);
}

static void write_patients(const place *p) {
    FILE *file, *outcomes;
    if (mkdir(place_path(p, "data/physionet2012"), 0777) != 0 || mkdir(place_path(p, "data/physionet2012/set-a"), 0777))
        fail_system("data");
    outcomes = create(p, "data/physionet2012/Outcomes-a.txt");
    fputs("RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n", outcomes);
    for (int i = 0; i < PATIENTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "data/physionet2012/set-a/%d.txt", 1000 + i);
        file = create(p, name);
        fprintf(file, "Time,Parameter,Value\n00:00,RecordID,%d\n00:00,Age,%d\n", 1000 + i, 40 + i);
        for (int k = 0; k < 8; k++)
            fprintf(file, "%02d:%02d,HR,%d\n", 5 * k, 7 * (i + k) % 60, i % 3 ? 70 + k : 110 + k);
        done(file);
        fprintf(outcomes, "%d,1,1,5,-1,%d\n", 1000 + i, i % 3 == 0);
    }
    done(outcomes);
}

static void put_little(FILE *file, unsigned long x, int bytes) {
    for (int i = 0; i < bytes; i++) fputc((int)(x >> 8 * i & 255), file);
}

/* The events as a gzip file whose one block is stored as it is. */
static void write_packed(const place *p) {
    size_t n;
    char *bytes = file_bytes(place_path(p, "data/events.csv"), &n);
    FILE *file = create(p, "data/events.csv.gz");
    unsigned long crc = 0xFFFFFFFF;
    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    fwrite("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 1, 11, file);
    put_little(file, n, 2), put_little(file, ~n & 0xFFFF, 2);
    fwrite(bytes, 1, n, file);
    put_little(file, crc ^ 0xFFFFFFFF, 4), put_little(file, n, 4);
    done(file);
    free(bytes);
}

static void copy(const place *p, const char *from, const char *to) {
    size_t n;
    char *bytes = file_bytes(from, &n);
    FILE *file = create(p, to);
    fwrite(bytes, 1, n, file);
    done(file);
    free(bytes);
}

static void run(const place *p, const char *line) {
    outcome o = child_run(p, line, NULL, 0);
    if (p->page->calls[FAULT_read] == 0) {
        fprintf(stderr, "mtan: %s is not loaded into %s\n", p->preload, p->command);
        exit(2);
    }
    if (o.status != 0) {
        fprintf(stderr, "mtan: mtan %s: status %d\n%s", line, o.status, o.err);
        exit(2);
    }
    outcome_free(&o);
}

void cases_data(const place *p) {
    write_events(p), write_packed(p), write_patients(p);
    copy(p, "golden/torch-enc.pt", "data/checkpoint.pt");
    run(p, "train own --model enc " DATA "--out ../data/run --epochs 2 --head-hidden 4 " SMALL);
    run(p,
        "train own --model interp --data ../data/events.csv --out ../data/curves --epochs 1 --latent 2 --dec-hidden 4 "
        "--mlp-hidden 4 " SMALL);
}

/* ---- cases ---- */

void case_reset(const fault_case *c, const place *p) {
    tree_write(&c->before, place_path(p, "work"));
}

const char *case_again(const fault_case *c, const tree *now) {
    return c->run == FROM_START && tree_find(now, "run/last.safetensors") ? TRAIN("3") "--resume" : c->line;
}

/* A run that a signal ended in the middle of its second epoch, four batches being an epoch. */
static int make_half(fault_case *c, const place *p) {
    outcome o;
    case_reset(c, p);
    for (int at = 8;; at++) {
        char fault[40];
        snprintf(fault, sizeof fault, "clock:%d:term", at);
        o = child_run(p, TRAIN("3"), fault, 0);
        if (o.status == 130 && strstr(o.err, "interrupted after epoch 2, batch 1")) break;
        if (o.status != 130) return printf("no run is interrupted in its second epoch\n%s", o.err), 0;
        outcome_free(&o);
        case_reset(c, p);
    }
    c->before = o.after, o.after.n = 0, o.after.files = NULL;
    outcome_free(&o);
    return 1;
}

static void make_whole(fault_case *c, const place *p) {
    case_reset(c, p);
    run(p, TRAIN("3"));
    c->before = tree_read(place_path(p, "work"));
}

/* Every version of a model that a run wrote is one that the command can read, and the best ones give what they are said to give. */
static int is_sound(const disk_version *v, const place *p) {
    const char *slash = strrchr(v->path, '/'), *name = slash ? slash + 1 : v->path;
    char line[TREE_PATH + 16];
    tree one = {NULL, 0};
    outcome o;
    int good;
    snprintf(line, sizeof line, "%s %s", strcmp(name, "best.safetensors") == 0 ? "selftest" : "inspect", name);
    tree_put(&one, name, 0, v->bytes, v->n);
    tree_write(&one, place_path(p, "work"));
    o = child_run(p, line, NULL, 0);
    if (!(good = o.status == 0)) printf("%s: status %d: %s", line, o.status, o.err);
    outcome_free(&o), tree_free(&one);
    return good;
}

static int versions_are_sound(const disk *d, const place *p) {
    int good = 1;
    for (size_t i = 0; i < d->n_versions; i++) {
        const disk_version *v = &d->versions[i];
        const int is_old = v->n == strlen(OLD) && memcmp(v->bytes, OLD, v->n) == 0;
        if (strstr(v->path, ".safetensors") && !is_old) good = is_sound(v, p) && good;
    }
    return good;
}

int case_needs_more(const fault_case *c, const place *p) {
    outcome o;
    int needs;
    if (!strstr(c->line, PACKED)) return 0;
    o = child_run(p, c->line, NULL, 0);
    needs = strstr(o.err, "built without zlib") != NULL;
    outcome_free(&o);
    return needs;
}

int case_open(fault_case *c, const place *p) {
    if (c->old) tree_put(&c->before, c->old, 0, OLD, strlen(OLD));
    if (c->run == FROM_MIDDLE && !make_half(c, p)) return 0;
    if (c->run == FROM_END) make_whole(c, p);
    case_record(c, p, &c->disk, &c->good);
    if (c->good.status != c->status)
        return printf("mtan %s ends with status %d: %s\n", c->line, c->good.status, c->good.err), 0;
    while (disk_step(&c->disk)) continue;
    return versions_are_sound(&c->disk, p);
}

void case_record(const fault_case *c, const place *p, disk *d, outcome *o) {
    case_reset(c, p);
    disk_begin(d, p);
    *o = child_run(p, c->line, NULL, 1);
    disk_log(d, p);
}

/* The paper's models have the paper's sizes. */
int case_is_large(const fault_case *c) {
    return strcmp(c->name, "table") == 0;
}

void case_close(fault_case *c) {
    tree_free(&c->before), outcome_free(&c->good), disk_free(&c->disk);
}
