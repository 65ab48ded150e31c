/* MIMIC-III from its official CSV tables, prepared as by interp-net (Shukla & Marlin 2019): twelve variables over 48
 * hours for the prediction of in-hospital mortality (Q50). The tables read are ADMISSIONS, CHARTEVENTS, OUTPUTEVENTS
 * and, for the correct preset, ICUSTAYS: .csv or .csv.gz, names in upper or lower case, columns found by their names.
 * The tables are streamed, and a row takes 13 bytes of memory: 0.4 GB in all for tables of MIMIC-III's size (0.6 with
 * MTAN_DOUBLE).
 *
 * A record is an admission, named by its HADM_ID, in the order of ADMISSIONS; its group is the patient, its label the
 * HOSPITAL_EXPIRE_FLAG. Times are hours. Rows without an admission are skipped, as in the published queries.
 *
 *            faithful: what interp-net's code does             correct
 * records    48 hours or more from ADMITTIME to DISCHTIME,     alive and in hospital 48 hours after the first ICU
 *            with or without an observation                    INTIME, with an observation
 * time 0     the first row of any of the twelve variables:     the first ICU INTIME: the window ends before the
 *            the 48 hours may reach past death                 outcome
 * longest    the first 200 distinct times                      no limit
 * items      those of the queries: pH without 6003 and         pH of blood; urine in ml, Metavision's too; FiO2 190;
 *            220274 (an AND among the ORs) but with that of    the three parts of the coma scale charted at one
 *            urine; urine per kg as well as in ml; APACHE      time, summed; no APACHE scores
 *            scores; no FiO2 190, no urine and almost no
 *            coma scale of Metavision
 * repeats    a series ends where the next time is not after    averaged
 *            the one before: at the first time charted twice,
 *            and where a channel's lists meet (Celsius after
 *            Fahrenheit; three of capillary refill)
 * values     missing if 0, below 0 or above 500                missing if outside the limits below
 * units      Fahrenheit; FiO2 unchanged                        Celsius (78.8 to 113 is read as Fahrenheit, whatever
 *                                                              the item says); FiO2 in % (up to 1 is a fraction)
 * ERROR = 1  kept                                              left out
 *
 * Capillary refill is 1 for brisk or normal, 2 for delayed or abnormal. Rows at the same time are taken in the file's
 * order; the published queries leave that order to the database.
 *
 * Limits of the correct preset, after conversion, both ends included: SpO2 1-100 %, HR 1-350 and RR 1-300 a minute, SBP
 * and DBP 1-375 mmHg, Temp 26-45 C, TGCS 3-15, UO 0-2445 ml, FiO2 20-100 %, Glucose 10-2000 mg/dl, pH 6.3-8.4. They are
 * the limits of mimic3-benchmarks (Harutyunyan et al. 2019) with two changes: a sensor's reading of 0 is not valid, and
 * glucose may fall to 10. */
#ifndef MTAN_TOOLS_MIMIC3_H
#define MTAN_TOOLS_MIMIC3_H

#include "dataset.h"

enum { MIMIC3_CHANNELS = 12 };

/* Fills `d`. Returns 1, or 0 with d->error set and nothing to free. `progress` (or NULL) is called now and then with
 * the fraction of all bytes read so far, 0 to 1, and the file being read (the folder at the end). Series without an
 * observation stay empty until mimic3_fill_missing. */
int mimic3_load(dataset *d, const char *folder, int faithful,
                void (*progress)(void *context, double share, const char *what), void *context);

/* Gives every series without an observation the channel's mean at time 0, as both papers say (Q51). The mean is over
 * all values of the n records in `train`; train = NULL: over all records, test set included, as in the published code
 * (faithful). Call it after the split and before any preprocessing. A channel without any value stays empty. */
void mimic3_fill_missing(dataset *d, const int32_t *train, size_t n);

/* The same in two steps, for records that come after training: the means are kept with the model. (12), NaN: none */
void mimic3_means(const dataset *d, const int32_t *train, size_t n, double *means);
void mimic3_fill(dataset *d, const double *means);

#endif
