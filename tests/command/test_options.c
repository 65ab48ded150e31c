/* The command line, parsed in the process of the test: what is wrong with it comes back as an error. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "../../tools/mtan/options/option_table.h"

enum { LINE = 256, WORDS = 16 };

/* Parses a line that is cut at blanks. What it says on standard error is left in `said`. */
static int parse(options *o, const char *line, char said[LINE]) {
    static char text[LINE];
    char *argv[WORDS], *rest = text;
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    int argc = 0, good;
    if (!file || before < 0) perror("mtan: tmpfile"), exit(2);
    snprintf(text, sizeof text, "%s", line);
    while (argc < WORDS && (argv[argc] = strtok_r(rest, " ", &rest)) != NULL) argc++;
    dup2(fileno(file), STDERR_FILENO);
    good = options_parse(o, argc, argv);
    dup2(before, STDERR_FILENO), close(before);
    rewind(file);
    said[fread(said, 1, LINE - 1, file)] = 0;
    fclose(file);
    return good;
}

/* `mtan COMMAND` with as many arguments as it needs, and one option. */
static int parse_number(options *o, const command *c, const option *x, double number, char said[LINE]) {
    char line[LINE];
    snprintf(line, sizeof line, "mtan %s %.*s--%s=%.17g", c->name, 2 * c->least, "a b c d ", x->name, number);
    return parse(o, line, said);
}

TEST errors_come_back(void) {
    static const char *const cases[][2] = {
        {"mtan trian own", "mtan: no command trian; did you mean train?\n"},
        {"mtan train own --epochs many", "mtan: --epochs many: not a number\n"},
        {"mtan train own --epochs=", "mtan: --epochs : not a number\n"},
        {"mtan train own --epochs 3x", "mtan: --epochs 3x: not a number\n"},
        {"mtan train own --epochs 0", "mtan: --epochs 0: must be from 1 to 1e+06\n"},
        {"mtan train own --epochs nan", "mtan: --epochs nan: must be from 1 to 1e+06\n"},
        {"mtan train own --epochs 1.5", "mtan: --epochs 1.5: must be a whole number\n"},
        {"mtan bench --epochs 1001", "mtan: --epochs 1001: must be from 1 to 1000\n"},
        {"mtan eval m --observed 0", "mtan: --observed 0: must be from 0.05 to 1\n"},
        {"mtan stream m --window -1", "mtan: --window -1: must be from 0 to 1e+12\n"},
    };
    char said[LINE];
    options o;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ASSERT_EQ_FMT(0, parse(&o, cases[i][0], said), "%d");
        ASSERT_STR_EQ(cases[i][1], said);
    }
    PASS();
}

TEST numbers_are_read(void) {
    char said[LINE];
    options o;
    ASSERT(parse(&o, "mtan train own --epochs many --epochs 7 --lr=1e-3 --quiet", said)); /* the last one counts */
    ASSERT_STR_EQ("", said);
    ASSERT_EQ(7, option_integer(&o, "epochs", 1));
    ASSERT_NEAR(1e-3, option_number(&o, "lr", 0), 0);
    ASSERT_EQ(64, option_integer(&o, "batch", 64));
    ASSERT_EQ(5, option_integer(&o, "bootstrap", 5)); /* no option of train */
    ASSERT(parse(&o, "mtan train own --epochs many --help", said));
    PASS();
}

/* Every number of every command: both ends of its range are taken, what is beyond them and what is between whole ones is not. */
TEST ranges_are_kept(void) {
    char said[LINE];
    options o;
    int numbers = 0;
    for (const command *c = commands; c->name; c++)
        for (int i = 0; option_at(i); i++) {
            const option *x = option_at(i);
            if (!option_belongs(i, c) || x->kind < OPTION_NUMBER) continue;
            ASSERT(parse_number(&o, c, x, x->low, said) && !(option_number(&o, x->name, -1) > x->low));
            ASSERT(parse_number(&o, c, x, x->high, said) && !(option_number(&o, x->name, -1) < x->high));
            ASSERT(!parse_number(&o, c, x, x->low - 1, said) && strstr(said, "must be from"));
            ASSERT(x->high == INFINITY || !parse_number(&o, c, x, x->high + 1, said));
            ASSERT_EQ(x->kind == OPTION_NUMBER, parse_number(&o, c, x, x->low + 0.25, said));
            numbers++;
        }
    ASSERT(numbers > 30);
    PASS();
}

/* Rows of one name belong to different commands, and there is a place for the value of every option. */
TEST every_option_has_a_place(void) {
    char name[64];
    for (const command *c = commands; c->name; c++)
        for (int i = 0; option_name(i, name); i++) {
            ASSERT(i < OPTIONS_MOST);
            const char *own = option_name(i, name);
            if (option_belongs(i, c)) ASSERT_EQ_FMT(i, option_find(c, own, strlen(own)), "%d");
        }
    ASSERT(option_of("bench", "epochs")->high < option_of("train", "epochs")->high);
    ASSERT_EQ(NULL, option_of("train", "tolerance"));
    PASS();
}

SUITE(options_suite) {
    RUN_TEST(errors_come_back);
    RUN_TEST(numbers_are_read);
    RUN_TEST(ranges_are_kept);
    RUN_TEST(every_option_has_a_place);
}
