/* Room for the steps of a solver. A model with an ODE has a setting that bounds them, which sizes its memory; a record that needs
 * more is MTAN_ERR_MEMORY, and whoever ran it may try again with more room. */
#ifndef MTAN_TOOLS_SOLVER_ROOM_H
#define MTAN_TOOLS_SOLVER_ROOM_H

#include "../../../mtan.h"

#define STEPS_SETTING "most_steps"
/* Doubles the room, with a message; 0: the model has no such solver, or room enough. */
int grow_steps(mtan_config *c);

#endif
