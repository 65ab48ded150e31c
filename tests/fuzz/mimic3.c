/* Fuzz target: MIMIC-III's tables. Any bytes are refused with a reason, or give a data set that is in order, also after series
 * without an observation were filled.
 *
 * The first byte: 1: as published. The rest is the tables ADMISSIONS, ICUSTAYS, CHARTEVENTS and OUTPUTEVENTS between zero bytes, in
 * which bytes below 32 stand for words. */
#include "dataset_walk.h"

#include "../../tools/data/mimic3.h"

static const char *const words[FUZZ_WORDS] = {
    [1] = "SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,DEATHTIME,HOSPITAL_EXPIRE_FLAG\n",
    [2] = "HADM_ID,INTIME\n",
    [3] = "ITEMID,HADM_ID,CHARTTIME,VALUE,ERROR,VALUENUM\n",
    [4] = "ITEMID,HADM_ID,CHARTTIME,VALUE,ISERROR\n",
    [5] = "7,1,2130-02-04 04:00:00,2130-02-08 04:00:00,,0\n",
    [6] = "8,2,2131-02-04 04:00:00,2131-03-08 04:00:00,2131-02-09 04:00:00,1\n",
    [7] = "1,2130-02-04 05:00:00\n",
    [8] = "211,1,2130-02-04 06:00:00,80,0,80\n",
    [11] = "678,1,2130-02-04 07:00:00,98.6,0,98.6\n",
    [12] = "676,1,2130-02-04 07:00:00,37,0,37\n",
    [14] = "3348,1,2130-02-05 06:00:00,Brisk,0,\n",
    [15] = "40055,1,2130-02-04 08:00:00,120,\n",
    [16] = "2130-02-0",
    [17] = " 04:00:0",
    [18] = "220739,1,2130-02-04 09:00:00,4,0,4\n",
    [19] = "223900,1,2130-02-04 09:00:00,5,0,5\n",
    [20] = "223901,1,2130-02-04 09:00:00,6,0,6\n",
    [21] = "2,2131-02-04 05:00:00\n",
    [22] = "211,2,2131-02-04 06:00:00,80,1,80\n",
    [23] = "115,1,2130-02-05 06:00:00,Delayed,0,\n",
    [24] = "Normal <3 secs",
    [25] = ",,,,,,,,,,,,,,,,,,,,"}; /* twenty columns */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"ADMISSIONS.csv", "ICUSTAYS.csv", "CHARTEVENTS.csv", "OUTPUTEVENTS.csv"};
    static fuzz_file tables[4];
    static uint8_t bytes[FUZZ_ROOM];
    dataset d;
    if (size == 0) return 0;
    const int faithful = *data++ & 1;
    size--;
    for (int i = 0; i < 4; i++) fuzz_fill(&tables[i], names[i], bytes, fuzz_spell(bytes, words, &data, &size));
    if (mimic3_load(&d, fuzz_folder, faithful, NULL, NULL)) {
        PROMISE(arrlenu(d.records) > 0 && arrlen(d.channels) == MIMIC3_CHANNELS);
        dataset_walk(&d, 0);
        mimic3_fill_missing(&d, NULL, 0);
        dataset_walk(&d, 0);
        dataset_free(&d);
    } else PROMISE(d.error[0]);
    return 0;
}
