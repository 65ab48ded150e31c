/* A record through a model that `mtan export` wrote: thousandths for each class, on the console. */
#include <stdio.h>

#include "classify.h"

void app_main(void) {
    mtan_real p[model_outputs];
    printf("self-test: %s\n", classify_self_test() ? "passed" : "FAILED");
    const mtan_status status = classify_patient(p);
    if (status != MTAN_OK) printf("%s\n", mtan_status_message(status));
    for (int i = 0; status == MTAN_OK && i < model_classes; i++)
        printf("%s: %d\n", model_class_names[i], classify_thousandths(p[i]));
}
