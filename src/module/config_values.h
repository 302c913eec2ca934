/* An option of a module, and its values as text. State: world. */
#ifndef MODULE_CONFIG_VALUES_H
#define MODULE_CONFIG_VALUES_H

#include "base/buf.h"
#include "base/option.h"
#include "module/loaded.h"

enum kind { KIND_BOOL, KIND_NUMERIC, KIND_STRING, KIND_ENUM };

struct module_config {
    struct option option; /* first; its name and initial text are owned */
    struct module *module;
    struct module_config *next;
    const char *name; /* without the module's; part of option.name */
    enum kind kind;
    unsigned flags; /* REDISMODULE_CONFIG_ */
    union {
        RedisModuleConfigGetBoolFunc of_bool;
        RedisModuleConfigGetNumericFunc of_numeric;
        RedisModuleConfigGetStringFunc of_string;
        RedisModuleConfigGetEnumFunc of_enum;
    } get;
    union {
        RedisModuleConfigSetBoolFunc of_bool;
        RedisModuleConfigSetNumericFunc of_numeric;
        RedisModuleConfigSetStringFunc of_string;
        RedisModuleConfigSetEnumFunc of_enum;
    } set;
    RedisModuleConfigApplyFunc apply; /* or NULL */
    void *user_data;
    long long min, max;
    struct option_enum *names; /* KIND_ENUM; ends with {NULL, 0}; owned, with its texts */
    bool is_loaded;            /* the module has been told a value */
    bool is_changed;           /* and has not applied it yet */
};

struct config_value {
    long long number;  /* of a bool, a number, an enum */
    struct slice text; /* of a string */
};

/* Appends the value as CONFIG GET shows it. */
void config_value_append(const struct module_config *m, const struct config_value *v,
                         struct buf *out);
/* Reads it; false with *error, which lives until the next fault, when it is none of the option's. A
 * string's bytes stay where they are. */
bool config_value_parse(const struct module_config *m, struct slice text, struct config_value *v,
                        const char **error) MUST_CHECK;
/* Sets *error, and returns false: to this text, or to a copy of it that lives until the next fault.
 */
bool config_fail(const char **error, const char *text);
bool config_fail_text(const char **error, struct slice text);

#endif
