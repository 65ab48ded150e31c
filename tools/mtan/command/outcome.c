/* See outcome.h. */
#include "outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../run/bounds.h"
#include "../measure/numbers.h"
#include "../measure/predictions.h"
#include "../measure/stop.h"
#include "../report/attention_view.h"
#include "../report/contest_text.h"
#include "../report/verdict.h"
#include "commands.h"
#include "../model/shared_options.h"
#include "../base/shell_word.h"

enum { DRAWS = 1000 };

static contest_number *contest_of_classes(runner *run, const training *t, const int32_t *positions) {
    class_rivals r;
    contest_number *numbers;
    predictions p;
    if (!predictions_make(&p, run, t->data, positions, t->plan->source.preset == MTAN_FAITHFUL, (size_t)t->plan->batch))
        return NULL;
    predictions_drop_unlabelled(&p);
    class_rivals_make(&r, t->data, t->split->part[SPLIT_TRAIN], positions, positions);
    numbers = p.rows > 0 ? contest_classes(&r, &p, DRAWS) : NULL;
    class_rivals_free(&r);
    predictions_free(&p);
    return numbers;
}

static contest_number *contest_of_curves(runner *run, const training *t, const int32_t *positions) {
    const double share = t->plan->source.observed;
    record_error *each = tool_calloc(arrlenu(positions), sizeof *each);
    const interpolation_request q = {t->data, positions, share, (size_t)t->plan->batch, 0, each, NULL, NULL};
    contest_number *numbers = NULL;
    interpolation_error e;
    if (interpolation_measure(&e, run, &q, 0))
        numbers = contest_curves(t->data, t->split->part[SPLIT_TRAIN], positions, share, each, DRAWS);
    free(each);
    return numbers;
}

/* Numbers are in the data's units. */
static contest_number *contest_of_numbers(runner *run, const training *t, const int32_t *positions, const prep *units) {
    const int labels = run->model->config.task == MTAN_TASK_LABELS;
    number_rivals r;
    contest_number *numbers = NULL;
    number_predictions p;
    if (!numbers_make(&p, run, t->data, units, positions)) return NULL;
    number_rivals_make(&r, t->data, units, t->split->part[SPLIT_TRAIN], positions, positions);
    if (p.rows > 0) numbers = labels ? contest_labels(&r, &p, DRAWS) : contest_numbers(&r, &p, DRAWS);
    number_rivals_free(&r);
    numbers_free(&p);
    return numbers;
}

/* The same validation records chose the network's epoch and the regression's ridge, so neither has an advantage. */
static void say_contest(runner *run, const training *t, const prep *units) {
    const int32_t *positions = t->split->part[SPLIT_VALID];
    const mtan_config *config = &run->model->config;
    const int curves = t->plan->source.interpolation;
    contest_number *numbers = curves                              ? contest_of_curves(run, t, positions)
                              : config->task == MTAN_TASK_CLASSES ? contest_of_classes(run, t, positions)
                                                                  : contest_of_numbers(run, t, positions, units);
    const contest_number *n = contest_headline(numbers, contest_classes_of(config));
    char text[CONTEST_VERDICT_BYTES];
    if (stop_asked()) n = NULL; /* the numbers are of a part of the work */
    if (n) note("validation, %td records: %s", arrlen(positions), contest_line(text, sizeof text, n));
    if (n && *contest_verdict(text, n, config)) note("%s", text);
    arrfree(numbers);
}

static void say_attention(runner *run, const training *t) {
    char text[VERDICT_BYTES];
    const double peak = attention_peak(&run->predictor[0], t->data, t->split->part[SPLIT_VALID]);
    if (*verdict_uniform(text, peak)) note("%s", text);
}

void outcome_next(const char *best, const options *o) {
    static const char *const given[] = {"data", "labels", "static"};
    char line[1024] = "", option[16];
    shell_append(line, sizeof line, "mtan"), shell_append(line, sizeof line, "eval");
    shell_append(line, sizeof line, best);
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (!option_given(o, given[i])) continue;
        snprintf(option, sizeof option, "--%s", given[i]);
        shell_append(line, sizeof line, option);
        shell_append(line, sizeof line, option_text(o, given[i], ""));
    }
    note("next, on the test records: %s", line);
}

void outcome_say(const char *best, const training *t, const options *o) {
    char error[512] = "";
    bundle b;
    runner run;
    if (quiet()) return;
    if (arrlen(t->split->part[SPLIT_VALID]) > 0 && bundle_read(&b, best, error)) {
        const mtan_config *config = &b.model.config;
        const mtan_bounds bounds =
            t->plan->source.interpolation ? interpolation_bounds(t->data) : model_bounds(config, t->data);
        b.model.backend = t->model.backend;
        if (runner_start(&run, &b.model, bounds, option_threads(o), error)) {
            say_contest(&run, t, &b.prep);
            if (!stop_asked()) say_attention(&run, t);
            runner_stop(&run);
        }
        bundle_free(&b);
    }
}
