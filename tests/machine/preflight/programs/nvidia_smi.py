"""Stands for nvidia-smi's boost-slider: keeps levels in a file, notes every call with its times.

MADE_SMI names a folder with state.json: {"levels": {"0": 0}, "most": 4, "refuse": …, …}; every call
is a line of calls.jsonl there, written when it begins and when it ends. A line tells how many
stand-in servers of this checkout had been started by then, and whether one lives.
"""

import json
import os
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["MADE_SMI"])
STATE = FOLDER / "state.json"


def note(what: str) -> None:
    with (FOLDER / "calls.jsonl").open("a") as file:
        line = {"pid": os.getpid(), "what": what, "argv": sys.argv[1:], **servers()}
        file.write(json.dumps(line) + "\n")


def servers() -> dict[str, object]:
    counter = os.environ.get("PERFGATE_STANDIN_COUNTER")
    if counter is None:
        return {}
    import psutil

    lives = False
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("PERFGATE_STANDIN_COUNTER") == counter
            lives |= ours and any("standin_server" in word for word in process.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    started = int(Path(counter).read_text()) if Path(counter).exists() else 0
    return {"started": started, "lives": lives}


def main() -> int:
    state = json.loads(STATE.read_text())
    arguments = sys.argv[1:]
    if arguments[0].startswith("--query-gpu"):
        for _ in state["levels"]:
            print("NVIDIA B200, 183359, 580.1")
        return 0
    assert arguments.pop(0) == "boost-slider"
    if arguments == ["-l"]:
        if state.get("list_fails_from") and count("-l") >= state["list_fails_from"]:
            print("Unable to determine the device handle")
            return 6
        print("+" + "-" * 60 + "+")
        print("| GPU   Boost Slider     Max Value    Current Value          |")
        for gpu, level in state["levels"].items():
            slider = state.get("name", "vboost")
            print(f"|   {gpu}   {slider}            {state['most']}            {level}    |")
        print("+" + "-" * 60 + "+")
        return 0
    chosen, level = arguments[1].split(","), int(arguments[3])
    assert (arguments[0], arguments[2]) == ("-i", "--vboost")
    time.sleep(state.get("seconds", 0))
    for number, gpu in enumerate(chosen):
        if state.get("refuse") == "permission":
            print(f"Unable to set vboost slider for GPU {gpu}: Insufficient Permissions")
            return 4
        if number >= state.get("fails_after", 99):
            print(f"Unable to set vboost slider for GPU {gpu}: Unknown Error")
            return 9
        if not state.get("pretends"):
            state["levels"][gpu] = level
        new = FOLDER / "state.new"
        new.write_text(json.dumps(state))
        new.rename(STATE)
        print(f"Successfully set vboost slider with value {level} for GPU 0")
    return 0


def count(word: str) -> int:
    lines = (FOLDER / "calls.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    return sum(call["what"] == "begins" and word in call["argv"] for call in calls)


if __name__ == "__main__":
    note("begins")
    status = main()
    note("ends")
    sys.exit(status)
