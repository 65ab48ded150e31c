/* mtan: the command. See commands.c for the list of commands, options.c for the parser, and each command's own file. */
#include <stdio.h>
#include <string.h>

#include "../../../mtan.h"
#include "commands.h"
#include "help.h"
#include "../run/device.h"

/* Output that did not reach its file (a full disk, a closed pipe) makes the command fail. */
static int check_output(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    return complain("standard output: cannot be written");
}

int main(int argc, char **argv) {
    options o;
    int status;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_short(stdout), check_output(DONE);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return puts("mtan " MTAN_VERSION), check_output(DONE);
    if (!options_parse(&o, argc, argv)) return BAD_USE;
    messages_quiet(option_given(&o, "quiet"));
    if (option_given(&o, "help")) return help_command(stdout, o.command->name), check_output(DONE);
    status = command_call(&o);
    device_close();
    return check_output(status);
}
