/* Runs the calls with NULL that tools/null_calls.py wrote, each in a process of its own: none may crash, and none may wait for
 * more than a minute. `null_calls [--data=FOLDER] [FUNCTION [PLACES]]` runs those of one function; with PLACES in this
 * process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"
#include "null_values.h"

enum { SECONDS_PER_CALL = 60 };

/* Calls that end the process with a signal are faults. Returns whether this one ended well. */
static bool run(const NullCall* it) {
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_PER_CALL);
        if (!freopen("/dev/null", "w", stdout)) _exit(2);
        it->where(it->call);
        _exit(0);
    }
    int how = 0;
    if (child < 0 || waitpid(child, &how, 0) < 0) {
        printf("!! cannot start a process\n");
    } else if (WIFSIGNALED(how)) {
        printf("!! %s without %s: signal %d\n", it->function, it->nulls, WTERMSIG(how));
    } else if (WEXITSTATUS(how) != 0) {
        printf("!! %s without %s: exit status %d\n", it->function, it->nulls, WEXITSTATUS(how));
    } else {
        return true;
    }
    return false;
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (strncmp(argv[i], "--data=", 7) == 0) run_cases(2, (char*[]){argv[0], argv[i]}, NULL, 0);
    const char* function = NULL;
    const char* nulls = NULL;
    for (int i = 1; i < argc; ++i) {
        if (strncmp(argv[i], "--data=", 7) == 0) continue;
        if (!function)
            function = argv[i];
        else if (!nulls)
            nulls = argv[i];
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    int n_run = 0, n_bad = 0;
    for (int i = 0; i < N_NULL_CALLS; ++i) {
        const NullCall* it = &NULL_CALLS[i];
        if (function && strcmp(it->function, function) != 0) continue;
        if (nulls && strcmp(it->nulls, nulls) != 0) continue;
        ++n_run;
        if (nulls)
            it->where(it->call);
        else if (!run(it))
            ++n_bad;
    }
    printf("%d calls with NULL, %d did not end well\n", n_run, n_bad);
    return n_bad != 0 || n_run == 0;
}
