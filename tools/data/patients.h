/* Made-up patients for the demo: a day of temperature, pulse and blood pressure, each measured a few times at irregular
 * hours, with noise and gaps. Every patient has a daily rhythm and one episode that affects all three channels. In half
 * of the patients the pulse rises two and a half hours before the fever, in the others two and a half hours after it:
 * that is the class, and no mean, spread or slope of one channel reveals it. Values are rounded as in a chart, so the
 * last bit of a machine's sine does not matter. */
#ifndef MTAN_TOOLS_PATIENTS_H
#define MTAN_TOOLS_PATIENTS_H

#include "../../mtan.h"

enum { PATIENT_CHANNELS = 3, PATIENT_HOURS = 24, PATIENT_MOST = 32 };
extern const char *const patient_channels[PATIENT_CHANNELS];
extern const char *const patient_classes[2]; /* fever-first, pulse-first */

typedef struct patient {
    mtan_observation seen[PATIENT_MOST]; /* channel after channel, each in order of time; channels as above */
    int32_t n;
    int pulse_first;
    double phase, swing, onset, height, fall, own[PATIENT_CHANNELS];
} patient;

/* Patient number i, the same every time. */
void patient_make(patient *p, uint32_t i);
/* The value of a channel without noise. */
double patient_truth(const patient *p, int32_t channel, double hour);

#endif
