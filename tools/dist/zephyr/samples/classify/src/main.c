/* A record through a model that `mtan export` wrote: thousandths for each class, on the console. */
#include <zephyr/kernel.h>

#include "classify.h"

int main(void) {
    mtan_real p[model_outputs];
    printk("self-test: %s\n", classify_self_test() ? "passed" : "FAILED");
    const mtan_status status = classify_patient(p);
    if (status != MTAN_OK) printk("%s\n", mtan_status_message(status));
    for (int i = 0; status == MTAN_OK && i < model_classes; i++)
        printk("%s: %d\n", model_class_names[i], classify_thousandths(p[i]));
    return 0;
}
