/* mtan selftest: does this machine compute what a model's file says that it computes? */
#include <stdio.h>

#include "../base/json_text.h"
#include "../model/golden_record.h"
#include "../model/shared_options.h"
#include "../run/device.h"
#include "commands.h"

static void tell_json(const char *path, const mtan_backend *backend, const golden_verdict *v) {
    fputs("{\"model\": ", stdout), json_string(stdout, path);
    printf(", \"backend\": \"%s\", \"numbers\": %zu, \"same_class\": %s, \"worst\": ", mtan_backend_name(backend),
           v->numbers, v->same_class ? "true" : "false");
    json_number(stdout, v->worst);
    printf(", \"passed\": %s}\n", v->passed ? "true" : "false");
}

static void tell(const char *path, const mtan_backend *backend, const golden_verdict *v) {
    const char *const name = mtan_backend_name(backend);
    const char *const how = v->same_class         ? "the same bits"
                            : on_device(backend) ? "equal to rounding"
                                                  : "equal to rounding (the model was written on the other class of "
                                                    "hardware)";
    if (v->passed) printf("%s: passed on %s: %zu numbers, %s\n", path, name, v->numbers, how);
    else printf("%s: FAILED on %s: largest difference %g\n", path, name, v->worst);
}

int command_selftest(const options *o) {
    const char *path = o->argument[0];
    char error[512] = "";
    golden_record x;
    golden_verdict v;
    bundle b;
    int status = BAD_USE;
    if (!bundle_read(&b, path, error)) return complain("%s", error);
    if (!option_backend(o, &b.model.backend)) return bundle_free(&b), BAD_USE;
    if (!golden_record_read(&x, &b)) complain("%s: holds no usable record for a self-test (mtan.golden.*)", path);
    else if (!golden_record_test(&v, &b, &x, error)) complain("%s: %s", path, error);
    else {
        (option_given(o, "json") ? tell_json : tell)(path, b.model.backend, &v);
        status = v.passed ? DONE : BAD_RESULT;
    }
    golden_record_free(&x);
    bundle_free(&b);
    return status;
}
