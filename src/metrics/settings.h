/* metrics-port, metrics-bind, metrics-token. State: world. */
#ifndef METRICS_SETTINGS_H
#define METRICS_SETTINGS_H

#include <stdint.h>

struct metrics_settings {
    int64_t port; /* 0: off */
    char *bind;   /* an address */
    char *token;  /* "" or NULL: none */
};

extern struct metrics_settings metrics_settings;

#endif
