/* sizes: prints the memory that a model needs, in bytes, before any hardware is bought or built.
 *
 *     sizes [RECIPE [EVENTS TIMES]]
 *
 * Without an argument, it prints every recipe. EVENTS and TIMES are the maximum per record: 1501 and 203 (the largest
 * in PhysioNet's set-a) by default. Weights may be in flash; the rest is RAM. The numbers hold for every CPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mtan/model/recipes.h"

/* A stage that fails is reported by name; the table continues. */
static int print_recipe(const char *name, int32_t events, int32_t times) {
    static const mtan_real nowhere[1] = {0}; /* sizes do not read weights */
    mtan_bounds bounds = {1, 0, 0};
    mtan_train_config train;
    recipe r;
    mtan_model model;
    size_t one = 0, all = 0;
    mtan_status status = recipe_named(&r, name, MTAN_FAITHFUL) ? MTAN_OK : MTAN_ERR_MISSING;
    bounds.events = events, bounds.times = times;
    mtan_train_config_init(&train);
    if (status == MTAN_OK) status = mtan_model_init(&model, &r.config, nowhere, mtan_weights_count(&r.config));
    if (status == MTAN_OK) status = mtan_predictor_size(&model, &bounds, &one);
    if (status == MTAN_OK) bounds.records = r.batch;
    if (status == MTAN_OK) status = mtan_trainer_size(&model, &train, &bounds, &all);
    if (status != MTAN_OK) {
        fprintf(stderr, "mtan: %s: %s\n", name, mtan_status_message(status));
        return 2;
    }
    printf("%-18s %10zu %12zu %12zu %6d\n", name, mtan_weights_count(&r.config) * sizeof(mtan_real), one, all,
           (int)r.batch);
    return 0;
}

int main(int argc, char **argv) {
    const int32_t events = argc == 4 ? atoi(argv[2]) : 1501, times = argc == 4 ? atoi(argv[3]) : 203;
    char name[RECIPE_NAME];
    int bad = 0;
    if (argc == 3 || argc > 4 || (argc > 1 && argv[1][0] == '-')) {
        fprintf(stderr, "usage: sizes [RECIPE [EVENTS TIMES]]\n");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    printf("%-18s %10s %12s %12s %6s\n", "recipe", "weights", "one record", "training", "batch");
    for (int i = 0; argc == 1 && i < RECIPES_OF_MTAN; i++) bad |= print_recipe(recipe_name(i, name), events, times);
    if (argc > 1) bad = print_recipe(argv[1], events, times);
    return bad;
}
