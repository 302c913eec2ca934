/* What this folder gives to the server: commands, options, figures. See README.md. */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include "engine/command.h"

#include <stddef.h>
#include <stdint.h>

extern const struct command_row script_commands[];
extern const struct command_row function_commands[];
extern const struct command_row job_commands[];

/* Boot, before clients come; and its reverse. */
void script_setup(void);
void script_teardown(void);

/* Figures for INFO. Any thread. */
struct script_figures {
    size_t vm_eval_bytes, vm_functions_bytes; /* of the interpreters */
    size_t scripts_bytes, functions_bytes;    /* what is kept of scripts beside them */
    uint64_t scripts, functions, libraries;
};
struct script_figures script_figures(void);

#endif
