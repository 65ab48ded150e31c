/* What the model is compared with: a Gaussian process against scikit-learn 1.9's GaussianProcessRegressor, lines and last values by
 * hand, summaries against NumPy; and the made-up patients. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "../../tools/data/patients.h"
#include "../../tools/mtan/measure/rivals.h"
#include "check.h"

static const mtan_observation seen[] = {{0.5, 0, 1}, {2, 0, 3}, {5, 0, 2}, {9, 0, -1}};
static const rival_series four = {seen, 4}, none = {seen, 0};

static int near(double got, double expected, double limit) {
    const int good = fabs(got - expected) <= limit;
    if (!good) printf("  BAD got %.12g, expected %.12g\n", got, expected);
    return good;
}

TEST lines_join_neighbours(void) {
    ASSERT(rival_linear(four, 0, 7) == 1 && rival_linear(four, 10, 7) == -1 && rival_linear(none, 3, 7) == 7);
    ASSERT(near(rival_linear(four, 1.25, 7), 2, 1e-12) && near(rival_linear(four, 7, 7), 0.5, 1e-12));
    PASS();
}

TEST the_last_value_stays(void) {
    ASSERT(rival_last(four, 0, 7) == 7 && rival_last(four, 0.5, 7) == 1 && rival_last(four, 4.9, 7) == 3);
    ASSERT(rival_last(four, 50, 7) == -1 && rival_last(none, 3, 7) == 7);
    PASS();
}

TEST the_process_is_scikit_learns(void) {
    static const double expected[] = {0.873600206320625, 3.06694856766765, 0.23702408082200543, 1.4999993852786058};
    static const double at[] = {0, 3, 7, 20};
    const rival_process p = {1.5, 4, 2, 0.1};
    for (int i = 0; i < 4; i++) ASSERT(near(rival_process_at(&p, four, at[i]), expected[i], 1e-9));
    ASSERT(rival_process_at(&p, none, 3) == 1.5);
    PASS();
}

/* On series of a slow wave the process must choose a long scale, on those of a quick one a short scale. */
TEST the_process_chooses_its_scale(void) {
    mtan_observation slow[40 * 12], quick[40 * 12];
    rival_series a[40], b[40];
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 12; k++) {
            const double t = k + 0.5 * sin(i + 3 * k);
            const mtan_observation x = {t, 0, sin(0.3 * t + i)}, y = {t, 0, sin(2 * t + i)};
            slow[12 * i + k] = x, quick[12 * i + k] = y;
        }
        a[i].seen = slow + 12 * i, a[i].n = 12, b[i].seen = quick + 12 * i, b[i].n = 12;
    }
    const rival_process p = rival_process_fit(a, 40), q = rival_process_fit(b, 40);
    ASSERT(p.length >= 2 * q.length);
    ASSERT(near(p.variance, 0.5, 0.1) && near(q.variance, 0.5, 0.1));
    ASSERT(near(rival_process_at(&p, a[7], 5.3), sin(0.3 * 5.3 + 7), 0.05));
    PASS();
}

TEST summaries_are_what_they_say(void) {
    static const double expected[] = {4, 1.25, -1, 3, 1.479019945774904, 1, -1, 9, 2, -0.3111111111111112};
    double out[RIVAL_SUMMARIES];
    rival_summarise(four, out);
    for (int i = 0; i < RIVAL_SUMMARIES; i++) ASSERT(near(out[i], expected[i], 1e-9));
    rival_summarise(none, out);
    ASSERT(out[0] == 0);
    for (int i = 1; i < RIVAL_SUMMARIES; i++) ASSERT(isnan(out[i]));
    PASS();
}

TEST patients_are_as_described(void) {
    patient p, again;
    double early = 0, all = 0;
    for (uint32_t i = 0; i < 200; i++) {
        patient_make(&p, i), patient_make(&again, i);
        ASSERT(memcmp(&p, &again, sizeof p) == 0);
        ASSERT(p.n > 5 && p.n <= 22);
        for (int32_t k = 0; k < p.n; k++) {
            const mtan_observation *x = &p.seen[k];
            const double off = x->value - patient_truth(&p, x->channel, x->time);
            ASSERT(x->time >= 0 && x->time <= 24 && (k == 0 || x->channel > x[-1].channel || x->time >= x[-1].time));
            ASSERT(fabs(off) < 5 * (x->channel == 0 ? 0.11 : 2.6));
        }
        /* half an hour before the fever the pulse has risen, or it has not */
        const double before = patient_truth(&p, 1, p.onset - 0.5);
        p.height = 0;
        const double rise = before - patient_truth(&p, 1, p.onset - 0.5);
        ASSERT(p.pulse_first ? rise > 5 : rise == 0);
        early += p.pulse_first, all++;
    }
    ASSERT(early / all > 0.4 && early / all < 0.6);
    PASS();
}

SUITE(rivals_suite) {
    RUN_TEST(lines_join_neighbours);
    RUN_TEST(the_last_value_stays);
    RUN_TEST(the_process_is_scikit_learns);
    RUN_TEST(the_process_chooses_its_scale);
    RUN_TEST(summaries_are_what_they_say);
    RUN_TEST(patients_are_as_described);
}
