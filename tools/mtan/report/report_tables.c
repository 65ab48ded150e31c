/* See report_tables.h. */
#include "report_tables.h"

#include <stdarg.h>

#include "../../data/array.h"
#include "../options/settings.h"

void report_pair_add(report_pair **pairs, const char *key, const char *format, ...) {
    char value[1024];
    report_pair pair;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    pair.key = tool_text(key), pair.value = tool_text(value);
    arrput(*pairs, pair);
}

report_pair *report_model_pairs(const mtan_config *config) {
    report_pair *pairs = NULL;
    char value[256];
    if (config->architecture) {
        report_pair_add(&pairs, "architecture", "%s", model_title(config));
        report_pair_add(&pairs, "figures of attention", "left out: this model has no attention over time");
    }
    for (int32_t i = 0; setting_key(config, i); i++)
        if (setting_show(config, setting_key(config, i), value, sizeof value))
            report_pair_add(&pairs, setting_key(config, i), "%s", value);
    return pairs;
}

report_pair *report_environment_pairs(const mtan_backend *backend) {
    report_pair *pairs = NULL;
    report_pair_add(&pairs, "mtan", MTAN_VERSION);
    report_pair_add(&pairs, "backend", "%s", mtan_backend_name(backend));
    report_pair_add(&pairs, "class of the CPU",
                    mtan_backend_fused(backend) ? "fused multiply-add" : "no fused multiply-add");
    report_pair_add(&pairs, "arithmetic", sizeof(mtan_real) == 8 ? "double" : "float");
#ifdef __VERSION__
    report_pair_add(&pairs, "compiler", "%s", __VERSION__);
#endif
#ifdef __OPTIMIZE__
    report_pair_add(&pairs, "build", "optimised");
#else
    report_pair_add(&pairs, "build", "not optimised");
#endif
    return pairs;
}

report_table report_table_of(const char *title, report_pair *pairs) {
    const report_table table = {title, pairs, arrlenu(pairs)};
    return table;
}

void report_table_free(const report_table *table) {
    report_pair *pairs = (report_pair *)(uintptr_t)table->pairs;
    for (size_t i = 0; i < table->n; i++)
        free((void *)(uintptr_t)pairs[i].key), free((void *)(uintptr_t)pairs[i].value);
    arrfree(pairs);
}
