/* Fuzz target: PhysioNet's archives and outcomes. Any bytes are refused with a reason, or give a data set that is in order.
 *
 * The first byte: 1: up to the next two zero bytes in a row the rest is an archive as it stands; 2: there are outcomes. Otherwise
 * an archive is members, up to an empty one: a byte that says what is odd about the header, and up to a zero byte the file, in
 * which bytes below 32 stand for words. Behind the archive stand the outcomes, with words too. */
#include "dataset_walk.h"

#include "../../tools/data/physionet.h"

enum { BLOCK = 512 };

static const char *const words[FUZZ_WORDS] = {[1] = "Time,Parameter,Value\n00:00,RecordID,132539\n",
                                              [2] = "00:00,Age,54\n",
                                              [3] = "00:07,HR,73\n",
                                              [4] = "48:00,Urine,-1\n",
                                              [5] = "Time,Parameter,Value",
                                              [6] = ",Weight,",
                                              [7] = ",NIDiasABP,",
                                              [8] = "00:07,",
                                              [11] = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n",
                                              [12] = "1,6,1,5,-1,0\n",
                                              [14] = "2,16,8,8,-1,1\n",
                                              [15] = "1e30",
                                              [16] = "nan",
                                              [17] = ",HR,",
                                              [18] = "10000:59"};

static void put_octal(uint8_t *field, int digits, uint64_t x) {
    for (field[digits] = 0; digits-- > 0; x >>= 3) field[digits] = (uint8_t)('0' + (x & 7));
}

static void seal(uint8_t header[BLOCK]) {
    uint64_t sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += header[i];
    put_octal(header + 148, 6, sum);
}

/* Bits of `odd`: 0 and 1 the name, 2 and 3 the size, 4 the kind, 5 the checksum. */
static size_t put_member(uint8_t *out, size_t at, uint8_t odd, const uint8_t *file, size_t n) {
    static const char *const names[] = {"./set-a/1.txt", "2.txt", "set-a/3.dat", "./99999999.txt"};
    static const uint64_t more[] = {0, 1, 600, (uint64_t)1 << 30};
    uint8_t header[BLOCK] = {0};
    static const uint8_t padding[BLOCK];
    strcpy((char *)header, names[odd & 3]);
    put_octal(header + 124, 11, n + more[odd >> 2 & 3]);
    header[156] = odd & 16 ? '5' : '0';
    seal(header);
    if (odd & 32) header[0]++;
    at = fuzz_put(out, at, header, BLOCK);
    at = fuzz_put(out, at, file, n);
    return fuzz_put(out, at, padding, (BLOCK - n % BLOCK) % BLOCK);
}

static size_t put_archive(uint8_t *out, const uint8_t **data, size_t *size) {
    static const uint8_t end[2 * BLOCK];
    static uint8_t file[FUZZ_ROOM];
    size_t at = 0;
    while (*size > 0 && **data != 0) {
        const uint8_t odd = *(*data)++;
        (*size)--;
        at = put_member(out, at, odd, file, fuzz_spell(file, words, data, size));
    }
    if (*size > 0) (*data)++, (*size)--;
    return fuzz_put(out, at, end, sizeof end);
}

static size_t put_raw(uint8_t *out, const uint8_t **data, size_t *size) {
    size_t n = 0;
    while (n < *size && !(n + 1 < *size && (*data)[n] == 0 && (*data)[n + 1] == 0)) n++;
    const size_t at = fuzz_put(out, 0, *data, n);
    *data += n, *size -= n;
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz_file archive, outcomes;
    static uint8_t bytes[FUZZ_ROOM];
    dataset d;
    size_t n;
    if (size == 0) return 0;
    const uint8_t options = *data++;
    size--;
    n = options & 1 ? put_raw(bytes, &data, &size) : put_archive(bytes, &data, &size);
    fuzz_fill(&archive, "set-a.tar", bytes, n);
    n = options & 2 ? fuzz_spell(bytes, words, &data, &size) : 0;
    if (n == 0) n = fuzz_put(bytes, 0, words[11], strlen(words[11]));
    fuzz_fill(&outcomes, "Outcomes-a.txt", bytes, n);
    if (physionet_load(&d, archive.path, 'a')) {
        PROMISE(arrlenu(d.records) > 0 && arrlen(d.channels) == PHYSIONET_CHANNELS);
        dataset_walk(&d, 1);
        (void)physionet_summarise(&d);
        dataset_free(&d);
    } else PROMISE(d.error[0]);
    return 0;
}
