/* Room for the steps of an ODE solver. A setting bounds the steps and so sizes the memory. A record that needs more
 * fails with MTAN_ERR_MEMORY, and the caller may try again with more room. */
#ifndef MTAN_TOOLS_SOLVER_ROOM_H
#define MTAN_TOOLS_SOLVER_ROOM_H

#include "../../../mtan.h"

#define STEPS_SETTING "most_steps"
/* Doubles the room, with a message; 0: the model has no such solver, or the room is at its limit. */
int grow_steps(mtan_config *c);

#endif
