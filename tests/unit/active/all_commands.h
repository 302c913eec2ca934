/* The commands of a whole server, for tests that look at all of them. */
#ifndef TESTS_UNIT_REPL_ALL_COMMANDS_H
#define TESTS_UNIT_REPL_ALL_COMMANDS_H

/* Registers them; command_teardown is the reverse. */
void all_commands_register(void);

#endif
