/* Completion for shells, from the tables of commands and options. See completion.h. */
#include "completion.h"

#include <string.h>

#include "../model/recipes.h"
#include "../options/option_table.h"

/* The first argument of `mtan train`: own, or a published setting. */
static void print_recipes(FILE *out) {
    char name[64];
    fputs("own", out);
    for (int i = 0; recipe_name(i, name); i++) fprintf(out, " %s", name);
}

static const char *help_of(int i) {
    return option_at(i) ? option_at(i)->help : "a setting of the model";
}

/* ---- bash ---- */

static void complete_bash(FILE *out) {
    char buffer[64];
    fputs("_mtan() {\n    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then words='",
          out);
    for (const command *c = commands; c->name; c++) fprintf(out, "%s%s", c == commands ? "" : " ", c->name);
    fputs("'\n    elif [ \"${word#-}\" != \"$word\" ]; then case $command in\n", out);
    for (const command *c = commands; c->name; c++) {
        fprintf(out, "        %s) words='", c->name);
        for (int i = 0; option_name(i, buffer); i++)
            if (option_belongs(i, c)) fprintf(out, "--%s ", option_name(i, buffer));
        fputs("' ;;\n", out);
    }
    fputs("    esac; elif [ \"$command\" = train ] && [ \"$COMP_CWORD\" -eq 2 ]; then words='", out);
    print_recipes(out);
    fputs("'; fi\n    if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    else COMPREPLY=($(compgen -f -- \"$word\")); fi\n}\ncomplete -o filenames -F _mtan mtan\n",
          out);
}

/* ---- zsh ---- */

/* 'name:text', a quote of the text as '\'', a colon as \: */
static void print_zsh_pair(FILE *out, const char *dashes, const char *name, const char *text) {
    fprintf(out, "        '%s%s:", dashes, name);
    for (; *text; text++)
        if (*text == '\'') fputs("'\\''", out);
        else fprintf(out, "%s%c", *text == ':' || *text == '\\' ? "\\" : "", *text);
    fputs("'\n", out);
}

/* Works as a file in the folder where zsh looks for functions, and through eval. */
static void complete_zsh(FILE *out) {
    char buffer[64];
    fputs("#compdef mtan\n_mtan() {\n    local -a names options\n    names=(\n", out);
    for (const command *c = commands; c->name; c++) print_zsh_pair(out, "", c->name, c->summary);
    fputs("    )\n    if (( CURRENT == 2 )); then _describe command names; return; fi\n    case $words[2] in\n", out);
    for (const command *c = commands; c->name; c++) {
        fprintf(out, "    %s) options=(\n", c->name);
        for (int i = 0; option_name(i, buffer); i++)
            if (option_belongs(i, c)) print_zsh_pair(out, "--", option_name(i, buffer), help_of(i));
        fputs("    ) ;;\n", out);
    }
    fputs("    esac\n    if [[ $PREFIX == -* ]]; then _describe -o option options\n"
          "    elif [[ $words[2] == train ]] && (( CURRENT == 3 )); then compadd ",
          out);
    print_recipes(out);
    fputs("\n    else _files; fi\n}\n"
          "if [[ $funcstack[1] == _mtan ]]; then _mtan \"$@\"; else compdef _mtan mtan; fi\n",
          out);
}

/* ---- fish ---- */

static void print_fish_text(FILE *out, const char *text) {
    fputs(" -d '", out);
    for (; *text; text++) fprintf(out, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    fputs("'\n", out);
}

static void complete_fish(FILE *out) {
    char buffer[64];
    for (const command *c = commands; c->name; c++) {
        fprintf(out, "complete -c mtan -n __fish_use_subcommand -f -a %s", c->name);
        print_fish_text(out, c->summary);
    }
    for (const command *c = commands; c->name; c++)
        for (int i = 0; option_name(i, buffer); i++) {
            const option *x = option_at(i);
            if (!option_belongs(i, c)) continue;
            fprintf(out, "complete -c mtan -n '__fish_seen_subcommand_from %s' -l %s", c->name, option_name(i, buffer));
            if (x && x->letter) fprintf(out, " -s %c", x->letter);
            if (!x || x->argument) fputs(" -r", out);
            print_fish_text(out, help_of(i));
        }
    fputs("complete -c mtan -n '__fish_seen_subcommand_from train; and test (count (commandline -opc)) -eq 2' -f -a '",
          out);
    print_recipes(out);
    fputs("'\n", out);
}

int complete_for(FILE *out, const char *shell) {
    if (strcmp(shell, "bash") == 0) complete_bash(out);
    else if (strcmp(shell, "zsh") == 0) complete_zsh(out);
    else if (strcmp(shell, "fish") == 0) complete_fish(out);
    else return 0;
    return 1;
}
