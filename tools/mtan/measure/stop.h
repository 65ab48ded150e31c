/* Lets a long computation ask whether its result is still wanted: `mtan train` fits trees and compares the model after
 * the last epoch, and Ctrl-C stops that too.
 *
 * Who starts the work listens on its thread; the work asks in its outer loops and, if it is to stop, returns at once
 * with a result that is valid but of no use. Whoever uses the result asks again: once stopped, it stays so until
 * stop_listen is called again. Without a listener nothing is ever stopped. */
#ifndef MTAN_TOOLS_STOP_H
#define MTAN_TOOLS_STOP_H

/* unwanted(context) returns 1 to stop the work; NULL: nobody listens. */
void stop_listen(int (*unwanted)(void *context), void *context);
int stop_asked(void);

#endif
