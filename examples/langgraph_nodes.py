"""
A LangGraph graph whose nodes use the kernel.

LangGraph decides who acts next; the kernel remembers what was planned, who may
change which file, what was checked and what that was worth. Kill it wherever you
like and start it again: done steps are not done twice, because what is next comes
from the ledger and not from the graph's state.
"""

import sys
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from planforge.kernel.api import Assignment, Evidence, Kernel, Proposal, TouchedFile, planned
from planforge.workspace.checks.observation import observe

HOLDER = "langgraph"


class State(TypedDict):
    """What LangGraph carries from node to node: ids, never the work itself."""

    plan: str
    step: str


def plan_node(state: State) -> State:
    """Make the plan, unless an earlier run of this script has made it."""
    if state["plan"]:
        return state
    steps = [
        planned("parse", files=["parse.py"]),
        planned("render", files=["render.py"]),
        planned("join", files=["join.py"], depends_on=["parse", "render"]),
    ]
    return {"plan": kernel.plan.create("Three small modules", steps=steps), "step": ""}


def choose_node(state: State) -> State:
    """Ask the plan graph for what a run that was killed has left, then for what can start now."""
    steps = kernel.plan.view(state["plan"]).steps
    left = [step.node for step in steps if step.holder == HOLDER]
    ready = kernel.plan.next_steps(state["plan"], limit=1)
    return {"plan": state["plan"], "step": next(iter([*left, *ready]), "")}


def work_node(state: State) -> State:
    """Carry one step out, under a lease, with evidence."""
    outcome = kernel.step.execute(state["step"], write_module, run_module, holder=HOLDER)
    if not outcome.accepted:
        raise RuntimeError(f"{outcome.step}: {outcome.reason}")
    print(outcome.step, "accepted")
    return state


def write_module(assignment: Assignment) -> Proposal:
    """What an agent would do."""
    path = Path(assignment.files[0])
    path.write_text(f"def {assignment.name}():\n    return {assignment.name!r}\n")
    tree = sha256(path.read_bytes()).hexdigest()
    return Proposal(files=(TouchedFile(path=str(path), hash=tree),), tree=tree, changed_lines=2)


def run_module(assignment: Assignment, proposal: Proposal) -> Evidence:
    """What counts."""
    name = assignment.name
    program = f"import runpy; assert runpy.run_path('{name}.py')['{name}']() == '{name}'"
    return observe(
        [sys.executable, "-c", program], tree=proposal.tree, tests=1, objects=kernel.ledger.objects
    )


graph = StateGraph(State)
graph.add_node("plan", plan_node)
graph.add_node("choose", choose_node)
graph.add_node("work", work_node)
graph.add_edge(START, "plan")
graph.add_edge("plan", "choose")
graph.add_conditional_edges("choose", lambda state: "work" if state["step"] else END)
graph.add_edge("work", "choose")

with Kernel.open(".") as kernel:
    graph.compile().invoke({"plan": kernel.plan.newest(), "step": ""})
