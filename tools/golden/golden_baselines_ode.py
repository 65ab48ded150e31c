"""The ODE solvers of the baselines, by torchdiffeq, and golden/ode-solvers.safetensors (see golden_baselines.py).

ode-solvers: the autonomous field y' = f(y), f = Linear(3, 6), tanh, Linear(6, 6), tanh, Linear(6, 3), from 4 starts.
    flow.{0,2,4}.{weight,bias}, start (4, 3), time (7)   F32: the field, the starts (time 0), the times of the outputs
    CASE/out                   F64 (4, 7, 3)
    CASE/grad.{start,flow.*}   of sum(out * u("cot.CASE", i)); each result with its err32 as golden/README.md says
    CASE/step_offset           I32 (5), or (2) when the rows share their steps
    CASE/step                  F64 (n, 2): start and size of every accepted step of dopri5, row after row
    CASE/tried                 I32 (4) or (1): steps tried, the rejected ones among them
Cases: euler, rk4 (its 3/8 rule): max(1, floor(20 gap + 0.007)) equal steps from output to output; dopri5:
every row alone, rtol 1e-3, atol 1e-4; dopri5-tight: 1e-4, 1e-5; dopri5-shared: one step and one error norm for all four
rows; dopri5-backward: at the times -time, every row alone; dopri5-double: 1e-9, 1e-11, beyond float32 and so without
err32. Step sizes, the first one too, are constants to the gradient.
"""
import math

import numpy as np
import torch
import torchdiffeq
from torch import nn
from torchdiffeq._impl.misc import _rms_norm, _select_initial_step

import golden

EDGE = 0.007  # keeps gaps that are integer multiples of a step away from the edge of floor


def net(inputs, units, outputs, layers):
    """Linear, tanh and so on: layers + 2 Linears."""
    found = [nn.Linear(inputs, units)]
    for _ in range(layers):
        found += [nn.Tanh(), nn.Linear(units, units)]
    return nn.Sequential(*found, nn.Tanh(), nn.Linear(units, outputs))


class Plain(nn.Module):
    """f(t, y) in torchdiffeq's form."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, t, y):
        return self.f(y)


class Field(nn.Module):
    """sign * f(t, y) for dopri5; records the accepted steps."""
    all_tried = 0  # by all fields

    def __init__(self, f, sign=1):
        super().__init__()
        self.f, self.sign, self.accepted, self.tried = f, sign, [], 0

    def forward(self, t, y):
        return self.sign * self.f(y)

    def callback_step(self, t0, y0, dt):
        self.tried += 1
        Field.all_tried += 1

    def callback_accept_step(self, t0, y0, dt):
        self.accepted.append((t0.item(), dt.item()))


def step_count(gap, per_unit):
    """Equal steps over a gap; both in double."""
    return max(1, math.floor(per_unit * gap + EDGE))


def fixed_steps(method, f, y, gap, steps):
    """y after `gap` (of either sign) in equal steps."""
    times = torch.linspace(0, gap, steps + 1, dtype=torch.get_default_dtype())
    return torchdiffeq.odeint(Plain(f), y, times, method=method)[-1]


def dopri5(field, y, times, rtol, atol):
    """y at times > 0, ascending; one error norm over all of y."""
    start = torch.zeros(1, dtype=torch.float64)
    with torch.no_grad():
        first = _select_initial_step(field, start[0], y, 4, torch.tensor(rtol, dtype=torch.float64),
                                     torch.tensor(atol, dtype=torch.float64), _rms_norm)
    times = torch.cat((start, torch.tensor(times, dtype=torch.float64)))
    return torchdiffeq.odeint(field, y, times, rtol=rtol, atol=atol, method="dopri5", options={"first_step": first})[1:]


def solve(settings, f, y, times, sign=1):
    """y (..., Z) at times >= 0, ascending: (Q, ..., Z). settings: dec_solver, ode_steps, rtol, atol."""
    found = []
    if len(times) and times[0] == 0:
        found, times = [y], times[1:]
    if len(times) and settings.dec_solver == "dopri5":
        return torch.stack(found + list(dopri5(Field(f, sign), y, times, settings.rtol, settings.atol)))
    before = 0
    for time in times:
        gap = time - before
        y = fixed_steps(settings.dec_solver, f, y, sign * gap, step_count(gap, settings.ode_steps))
        found.append(y)
        before = time
    return torch.stack(found) if found else y.new_zeros(0, *y.shape)


# ---- ode-solvers.safetensors -----------------------------------------------------------------------------------------

STATES, UNITS, ROWS, STEPS = 3, 6, 4, 20
TIMES = np.array([0.0625, 0.15, 0.2, 0.5, 0.53125, 0.8, 1.0], np.float32)
TOLERANCES = {"dopri5": (1e-3, 1e-4), "dopri5-tight": (1e-4, 1e-5), "dopri5-shared": (1e-3, 1e-4),
              "dopri5-backward": (1e-3, 1e-4), "dopri5-double": (1e-9, 1e-11)}
CASES = ("euler", "rk4") + tuple(TOLERANCES)


def inputs():
    """Field and starts by the rule. The field is steep enough for dopri5 to reject steps; the last row starts nearly at
    rest."""
    f = net(STATES, UNITS, STATES, 1)
    parameters = golden.set_weights("flow", f)
    for name, parameter in parameters.items():
        parameter.data *= 8 if name.endswith("weight") else 1
    start = golden.by_rule("start", ROWS, STATES, scale=2.0)
    start[-1] /= 1024
    return f, parameters, start.requires_grad_()


def run_fixed(method, f, start):
    """By torchdiffeq on the whole grid at once."""
    grid, at = [0.0], []
    for before, after in zip(np.concatenate(([0], TIMES[:-1])).astype(float), TIMES.astype(float)):
        n = step_count(after - before, STEPS)
        grid += [before + (after - before) * i / n for i in range(1, n)] + [after]
        at.append(len(grid) - 1)
    times = torch.tensor(grid, dtype=torch.get_default_dtype())
    return torchdiffeq.odeint(Plain(f), start, times, method=method)[at].transpose(0, 1), []


def run_adaptive(case, f, start):
    sign = -1 if case == "dopri5-backward" else 1
    fields = [Field(f, sign) for _ in range(1 if case == "dopri5-shared" else ROWS)]
    rows = [start] if case == "dopri5-shared" else start
    found = [dopri5(field, row, TIMES.astype(float), *TOLERANCES[case]) for field, row in zip(fields, rows)]
    return found[0].transpose(0, 1) if case == "dopri5-shared" else torch.stack(found), fields


def run_case(case, taken):
    """Outputs and gradients; the first run, in float64, leaves its steps in `taken`."""
    f, parameters, start = inputs()
    out, fields = (run_adaptive if case in TOLERANCES else run_fixed)(case, f, start)
    taken.append(fields)
    loss = (out * golden.by_rule("cot." + case, *out.shape)).sum()
    return {"out": out} | golden.gradients(loss, {"start": start} | parameters)


def check_backward():
    """Checks that torchdiffeq's own run over descending times equals the field -f over ascending ones."""
    torch.set_default_dtype(torch.float64)
    f, _, start = inputs()
    ours = run_adaptive("dopri5-backward", f, start)[0]
    times = -torch.tensor(np.concatenate(([0], TIMES)).astype(float))
    rtol, atol = TOLERANCES["dopri5-backward"]
    theirs = torch.stack([torchdiffeq.odeint(Plain(f), row, times, rtol=rtol, atol=atol, method="dopri5")[1:]
                          for row in start])
    assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def export_solvers(path):
    check_backward()
    out = golden.Golden({"golden.rtol": TOLERANCES["dopri5"][0], "golden.atol": TOLERANCES["dopri5"][1],
                         "golden.steps": STEPS})
    torch.set_default_dtype(torch.float64)
    f, parameters, start = inputs()
    for name, parameter in parameters.items():
        out.put(name, parameter.detach().numpy(), "F32")
    out.put("start", start.detach().numpy(), "F32")
    out.put("time", TIMES, "F32")
    for case in CASES:
        put_case(out, case)
    out.write(path)


def put_case(out, case):
    taken = []
    if case == "dopri5-double":
        for name, result in golden.in_dtype(torch.float64, lambda: run_case(case, taken)).items():
            out.put(f"{case}/{name}", result)
    else:
        out.put_results(golden.both(lambda: run_case(case, taken)), prefix=case + "/")
    if case in TOLERANCES:
        fields = taken[0]
        assert all(a.tried == b.tried for other in taken for a, b in zip(fields, other)), f"{case}: on the edge"
        out.put(case + "/step_offset", np.cumsum([0] + [len(field.accepted) for field in fields]), "I32")
        out.put(case + "/step", [step for field in fields for step in field.accepted])
        out.put(case + "/tried", [field.tried for field in fields], "I32")
