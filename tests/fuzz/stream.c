/* Fuzz target: the lines of `mtan stream`. Any lines are taken or reported, and none ends the program.
 *
 * The first byte: 1: a model of dates, 2: that interpolates; 4: a window; 8: JSON; 16: few records; 32: a prediction each half hour.
 * The rest are lines, in which bytes below 32 stand for words. The models are made once; the command's own file is
 * included here to hand it a model that is open. */
#include "fuzz.h"

#include "../../tools/mtan/command/stream.c"

static const char *const words[FUZZ_WORDS] = {[1] = "record,time,channel,value\n",
                                              [2] = "a,0,c,1\n",
                                              [3] = "a,1.5,d,2\n",
                                              [4] = "b,2024-05-31T23:59:00.5+02:00,c,-3e2\n",
                                              [5] = "a,predict\n",
                                              [6] = "a,end\n",
                                              [7] = "a,2,,\n",
                                              [8] = "b,2024-05-31T23:59:01,,\n",
                                              [11] = "b\n",
                                              [12] = ",2024-05-31T",
                                              [14] = ",3.4e38",
                                              [15] = ",nan",
                                              [16] = "\"\"",
                                              [17] = ",c,",
                                              [18] = ",d,",
                                              [19] = "a,-3.4e38,c,1\n"};

/* A model of two channels with weights as training starts with them, and preprocessing for it. */
static void make_bundle(bundle *b, int dates, int interpolates) {
    static const char *const names[] = {"c", "d"};
    mtan_config c;
    memset(b, 0, sizeof *b);
    PROMISE(mtan_config_init(&c, interpolates ? MTAN_FULL : MTAN_ENC,
                             interpolates ? MTAN_CLASSIFY_NONE : MTAN_CLASSIFY_RECORD, 2, 2) == MTAN_OK);
    c.embed = c.ref_points = c.enc_hidden = c.dec_hidden = c.latent = c.mlp_hidden = 2;
    c.head_hidden = 0, c.predict_samples = 1;
    const size_t count = mtan_weights_count(&c);
    b->weights = tool_calloc(count, sizeof *b->weights);
    PROMISE(mtan_weights_init(&c, b->weights, count, 1) == MTAN_OK);
    PROMISE(mtan_model_init(&b->model, &c, b->weights, count) == MTAN_OK);
    for (int i = 0; i < 2; i++)
        arrput(b->prep.channels, tool_text(names[i])), arrput(b->prep.channel, prep_untouched());
    for (int part = 0; part < SPLIT_PARTS; part++) b->prep.time_scale[part] = 48;
    strcpy(b->prep.unit, dates ? "hours" : "");
}

/* A job as `run` has it before the first line. */
static void make_job(job *j, int dates, int interpolates, const stream_settings *s) {
    memset(j, 0, sizeof *j);
    j->settings = s;
    make_bundle(&j->bundle, dates, interpolates);
    j->dates = dates, j->interpolates = interpolates;
    sh_new_strdup(j->channels);
    name_channels(j);
    PROMISE(open_predictor(j));
    j->rows.config = &j->bundle.model.config, j->rows.interpolates = interpolates;
}

static job *job_of(uint8_t options) {
    static stream_settings settings[2];
    static job jobs[8];
    const int windowed = options >> 2 & 1;
    stream_settings *s = &settings[windowed];
    job *j = &jobs[options & 7];
    if (!s->model) {
        stream_settings_init(s);
        s->model = "model", s->keep = 3, s->window = windowed;
    }
    if (!j->settings) make_job(j, options & 1, options >> 1 & 1, s);
    s->records = options & 16 ? 1 : 100;
    j->every = options & 32 ? 0.5 : 0;
    j->rows.json = options >> 3 & 1, j->rows.begun = 0, j->failed = j->lost = 0;
    arrfree(j->wide);
    return j;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz_file file;
    static uint8_t bytes[FUZZ_ROOM];
    job *j;
    if (size == 0) return 0;
    j = job_of(*data++);
    size--;
    fuzz_fill(&file, "lines.csv", bytes, fuzz_spell(bytes, words, &data, &size));
    sh_new_strdup(j->states);
    PROMISE(csv_open(&j->csv, file.path));
    const int status = take_lines(j);
    PROMISE(status == DONE || status == BAD_RESULT || (status == BAD_USE && (j->csv.text.error[0] || j->lost)));
    for (ptrdiff_t i = 0; i < shlen(j->states); i++) free_state(j->states[i].value);
    shfree(j->states);
    csv_close(&j->csv);
    return 0;
}
