/* The golden ladder at model level: runs one file of golden/ through the library and compares every output and every
 * gradient with the reference. Used by the tests and by tools/check/agreement.c. golden/README.md has the rules. */
#ifndef MTAN_TESTS_LADDER_H
#define MTAN_TESTS_LADDER_H

#include "check.h"

/* Called once per compared tensor. share: fraction of the limit used; above 1 is a failure, and NaN counts as
 * infinite. */
typedef void (*ladder_visit)(void *context, const char *tensor, double difference, double limit, double share);

/* Runs golden/<name>.safetensors. Returns the number of tensors compared, or -1 with a message printed. */
int ladder_model(const char *name, const mtan_backend *backend, ladder_visit visit, void *context);
/* The same for a model defined elsewhere: its file holds the weights and names the file of its records. */
int ladder_elsewhere(const char *name, const mtan_architecture *architecture, const mtan_backend *backend,
                     ladder_visit visit, void *context);
/* The name of the architecture in golden/<name>.safetensors; 0: none. */
int ladder_architecture(const char *name, char *architecture, size_t size);
/* The ten training steps of golden/<name>.safetensors: `losses`. */
int ladder_training(const char *name, const mtan_backend *backend, ladder_visit visit, void *context);

/* Compares only the logits, computed by another way than mtan_predictor_logits but in the same layout. Returns 0 if the
 * way refuses the model with MTAN_ERR_CONFIG, or the model has no classes. */
typedef mtan_status (*ladder_way)(void *context, const mtan_model *model, const mtan_record *records, int32_t n,
                                  mtan_real *logits);
int ladder_logits(const char *name, const mtan_backend *backend, ladder_way way, ladder_visit visit, void *context);

/* The model cases by index; null past the last. */
const char *ladder_case(int index);

/* The rule of golden/README.md: u(name, i), and the weight tensor of a parameter. */
double golden_u(const char *name, size_t i);
void golden_weights(const mtan_config *config, mtan_real *weights, double freq, double gain);

#endif
