# SPDX-License-Identifier: MIT
"""Measurements for tests of the report, made of tests/golden/bench-good.json by simple models.

Usage: report_points.py DIRECTORY   writes NAME.json, or NAME-01.json ... of several points
"""
import copy
import json
import math
import os
import random
import sys

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/bench-good.json")
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'&amp;<!--"
SECONDS = 30
chance = random.Random(7)


def base():
    with open(GOLDEN) as f:
        return json.load(f)


def lognormal_bins(parts):
    """{ns: commands} of [(median us, sigma, commands)]."""
    bins = {}
    for median, sigma, commands in parts:
        steps = 120
        weights = [math.exp(-((8 * i / steps - 4) ** 2) / 2) for i in range(steps + 1)]
        scale = commands / sum(weights)
        for i, weight in enumerate(weights):
            ns = int(median * 1e3 * math.exp(sigma * (8 * i / steps - 4)))
            n = round(weight * scale)
            if n:
                bins[ns] = bins.get(ns, 0) + n
    return bins


def percentile(bins, share):
    total = sum(bins.values())
    below = 0
    for ns in sorted(bins):
        below += bins[ns]
        if below >= share * total:
            return ns / 1e3 if (1 - share) * total >= 10 else None
    return None


def latency_of(bins):
    total = sum(bins.values())
    mean = sum(ns * n for ns, n in bins.items()) / total / 1e3
    figures = {"mean_us": mean, "stddev_us": mean / 2, "max_us": max(bins) / 1e3}
    for key, share in (("p50_us", .5), ("p90_us", .9), ("p99_us", .99), ("p99_9_us", .999),
                       ("p99_99_us", .9999)):
        figures[key] = percentile(bins, share)
    return figures


def set_sides(doc, of_side, block, queued=1.0):
    """of_side: {"read": bins, "write": bins}; latency is the service stretched by QUEUED."""
    y, job, both = doc["yoke"], doc["jobs"][0], {}
    for side in ("read", "write"):
        service = of_side.get(side, {})
        waits = {int(ns * queued): n for ns, n in service.items()}
        ops = sum(service.values())
        for kind, bins in (("clat_ns", service), ("lat_ns", waits)):
            job[side][kind] = {"N": ops, "bins": {str(k): v for k, v in sorted(bins.items())}}
        for ns, n in service.items():
            both[ns] = both.get(ns, 0) + n
        y["sides"][side].update(ops=ops, bytes=ops * block, iops=ops / SECONDS,
                                bytes_per_s=ops * block / SECONDS)
        if ops:
            y["sides"][side]["service"] = latency_of(service)
            y["sides"][side]["latency"] = latency_of(waits)
    ops = sum(both.values())
    y["sides"]["total"].update(
        ops=ops, bytes=ops * block, iops=ops / SECONDS, bytes_per_s=ops * block / SECONDS,
        service=latency_of(both), latency=latency_of({int(k * queued): n for k, n in both.items()}))


def set_series(doc, block, seconds=SECONDS, wobble=0.03, paths=2):
    y = doc["yoke"]
    total = y["sides"]["total"]
    series = y["series"]
    for key in series:
        series[key] = []
    series["path_iops"] = [[] for _ in range(paths)]
    for t in range(seconds):
        factor = 1 + chance.uniform(-wobble, wobble)
        series["from_s"].append(float(t))
        series["to_s"].append(t + 1.0)
        for side in ("read", "write"):
            iops = y["sides"][side]["iops"] * factor
            series[side + "_iops"].append(iops)
            series[side + "_bytes_per_s"].append(iops * block)
        for key in ("mean_us", "p50_us", "p99_us", "p99_9_us", "p99_99_us", "max_us"):
            value = total["latency"][key] or total["latency"]["max_us"]
            spread = 0.5 if key == "max_us" else wobble
            series[key].append(value * (1 - chance.uniform(0, spread)))
        series["in_flight"].append(y["point"]["depth"] * chance.uniform(0.995, 1))
        series["cpu"].append(1.4 * factor)
        for path in series["path_iops"]:
            path.append(total["iops"] * factor / paths * chance.uniform(0.98, 1.02))


def sweep_point(number, of, block, depth, sessions, run=1, runs=1, faster=1.0):
    doc = base()
    y = doc["yoke"]
    in_flight = depth * sessions
    floor_us = 110 + block / 900
    limit = min(190e3, 1.9 * 2 ** 30 / block, 52e3 * sessions) * faster
    iops = limit * (1 - math.exp(-in_flight / (floor_us / 1e6) / limit))
    iops *= chance.uniform(0.99, 1.01)
    mean = in_flight / iops * 1e6
    name = f"{block // 1024}K random read"
    y["point"].update(name=name, number=number, of=of, repeat=run, repeats=runs,
                      sessions=sessions, sessions_per_portal=max(1, sessions // 2), depth=in_flight)
    y["point"]["streams"] = [dict(y["point"]["streams"][0], block_bytes=block, read_percent=100,
                                  workers=0, depth=depth, sessions=0)]
    y["profile"], y["tells"] = "sweep", "what a session adds"
    sigma = 0.25 + 0.35 * (iops / limit) ** 4
    set_sides(doc, {"read": lognormal_bins([(mean * math.exp(-sigma ** 2 / 2), sigma,
                                             iops * SECONDS)])}, block)
    y["in_flight"] = {"mean": in_flight * .998, "asked": in_flight, "iops_x_service": in_flight * .998}
    set_series(doc, block)
    if block == 262144 and sessions == 8:
        y["meaningful"] = False
        y["warnings"] = [{"code": "link-bound", "text": "the links carried 97 % of what they can, "
                          "95 % or more: they were the limit"}]
    return doc


def sweep(faster=1.0):
    matrix = [(b, d, s) for b in (4096, 16384, 65536, 262144) for d in (1, 4, 16, 64)
              for s in (1, 2, 4, 8)]
    return [sweep_point(i + 1, len(matrix), b, d, s, faster=faster)
            for i, (b, d, s) in enumerate(matrix)]


def repeats(faster):
    return [sweep_point(i + 1, 3, b, 16, 4, r + 1, 3, faster if b == 4096 else 1.0)
            for i, b in enumerate((4096, 16384, 65536)) for r in range(3)]


def stall():
    """Two kinds of answers, a second without any, queueing on our side, an uneven path."""
    doc = base()
    y = doc["yoke"]
    set_sides(doc, {"read": lognormal_bins([(180, .2, 1.6e6), (2100, .25, 9e5), (1.3e6, .1, 190)]),
                    "write": lognormal_bins([(420, .3, 9e5), (1.35e6, .1, 90)])}, 4096, 1.15)
    set_series(doc, 4096)
    series = y["series"]
    for key in series:
        for column in series[key] if key == "path_iops" else [series[key]]:
            if key not in ("from_s", "to_s", "in_flight"):
                column[17] = 0.0
    for key in ("p99_us", "p99_9_us", "max_us"):
        series[key][18] = 1.4e6
    series["path_iops"][1][8:13] = [0.0] * 5
    y["meaningful"] = False
    y["warnings"] = [{"code": "not-steady", "text": "IOPS of the last five rounds differ by 41.0 %, "
                      "more than 20 %, and drift by 12.4 %, more than 10 %"},
                     {"code": "paths", "text": "192.0.2.2:3260 had 22.1 % of the commands, less than "
                      "half of its fair share"}]
    y["steady"].update(met=False, range_share=.41, drift_share=.124)
    y["verify"] = {"blocks_written": 1200, "blocks_read": 900, "writes_unknown": 2, "violation":
                   "LUN 0, block 17 (bytes 69632 to 73727): a lost write\n"
                   "  read 1.203411 to 1.203502 s by session 1 of portal 0 (127.0.0.1:3260): version 15\n"
                   "  version 20: written 0.9 to 1.1 s by session 0 of portal 0, GOOD; read 3 times"}
    y["expect"] = [{"condition": "iops>=100k", "met": True, "limit_iops": 1e5, "value_iops": 113000.0},
                   {"condition": "p99<=2ms", "met": False, "limit_us": 2000.0, "value_us": 3400.5}]
    return doc


def many_paths():
    doc = base()
    y = doc["yoke"]
    set_series(doc, 4096, seconds=300, paths=12)
    for key, rows in (("paths", 12), ("sessions", 48)):
        y[key] = [copy.deepcopy(y[key][0]) for _ in range(rows)]
    for i, path in enumerate(y["paths"]):
        path.update(address=f"[2001:db8:0:{i}::1:c0a8]:3260", share=1 / 12)
    y["target"]["portals"] = [{"address": p["address"], "target": f"iqn.2026-11.com.example:array-{i}"}
                              for i, p in enumerate(y["paths"])]
    y["host"]["threads"] = [{"cpu": .5 + i / 40, "lag_p99_us": 20.0, "lag_max_us": 900.0}
                            for i in range(16)]
    return doc


def hostile():
    doc = base()
    y = doc["yoke"]
    y["profile"] = y["tells"] = y["point"]["name"] = HOSTILE
    for path, portal in zip(y["paths"], y["target"]["portals"]):
        path["address"] = portal["address"] = portal["target"] = HOSTILE
    y["target"]["initiator"] = y["host"]["name"] = HOSTILE
    y["meaningful"] = False
    y["warnings"] = [{"code": HOSTILE, "text": HOSTILE * 3}]
    y["notes"] = y["warnings"]
    y["errors"] = [{"text": HOSTILE, "count": 2}]
    y["cross_check"] = {"done": False, "text": HOSTILE}
    y["verify"] = {"blocks_written": 1, "blocks_read": 1, "writes_unknown": 0, "violation": HOSTILE}
    y["expect"] = [{"condition": HOSTILE, "met": False, "limit_us": 1.0, "value_us": None}]
    return doc


def nothing():
    """Not one command was answered."""
    doc = base()
    y = doc["yoke"]
    for side in y["sides"].values():
        side.update(ops=0, bytes=0, iops=0.0, bytes_per_s=0.0)
        for kind in ("latency", "service"):
            side[kind] = dict.fromkeys(side[kind])
    for side in ("read", "write"):
        for kind in ("lat_ns", "clat_ns"):
            doc["jobs"][0][side][kind] = {"N": 0}
    for key, column in y["series"].items():
        if key not in ("from_s", "to_s"):
            y["series"][key] = [[0.0] * len(p) for p in column] if key == "path_iops" \
                else [0.0] * len(column)
    for row in y["paths"] + y["sessions"]:
        row.update(ops=0, bytes=0)
        row["latency"] = dict.fromkeys(row["latency"])
    y["meaningful"] = False
    y["warnings"] = [{"code": "short", "text": "0 commands were measured, less than 10,000"}]
    y["steady"].update(met=None, range_share=None, drift_share=None)
    return doc


def huge():
    doc = base()
    y = doc["yoke"]
    for side in y["sides"].values():
        side.update(ops=2 ** 62, bytes=2 ** 63 - 1, iops=9.2e17, bytes_per_s=9.2e18)
        for kind in ("latency", "service"):
            side[kind] = {key: 3.6e15 for key in side[kind]}
    for key, column in y["series"].items():
        if key not in ("from_s", "to_s", "path_iops"):
            y["series"][key] = [1.234e17 * (1 + i % 3) for i in range(len(column))]
    doc["jobs"][0]["read"]["lat_ns"]["bins"] = {"1": 1, "17112760320": 2 ** 53}
    y["target"]["luns"][0]["size_bytes"] = 2 ** 63 - 1
    return doc


def bare():
    """What a page cannot do without, and no more."""
    y = base()["yoke"]
    return {"yoke": {"schema": y["schema"], "meaningful": True,
                     "point": {"name": "4K random read", "streams": []},
                     "sides": {"total": {"iops": 1.0}}}}


def wrong_types():
    doc = base()
    y = doc["yoke"]
    for key in ("series", "paths", "target", "host", "steady", "expect", "warnings", "in_flight"):
        y[key] = 7
    y["errors"] = [None, 1, "x"]
    y["notes"] = {"text": []}
    doc["jobs"] = {"0": []}
    return doc


def one_interval():
    doc = base()
    for key, column in doc["yoke"]["series"].items():
        doc["yoke"]["series"][key] = [p[:1] for p in column] if key == "path_iops" else column[:1]
    return doc


POINTS = {"one": lambda: [base()], "sweep": sweep, "stall": lambda: [stall()],
          "old": lambda: repeats(1.0), "new": lambda: repeats(1.21),
          "single-old": lambda: sweep()[:6], "single-new": lambda: sweep(1.1)[:4],
          "paths": lambda: [many_paths()], "hostile": lambda: [hostile()],
          "nothing": lambda: [nothing()], "huge": lambda: [huge()], "bare": lambda: [bare()],
          "wrong": lambda: [wrong_types()], "interval": lambda: [one_interval()]}


def main(directory):
    for name, make in POINTS.items():
        docs = make()
        for i, doc in enumerate(docs):
            number = f"-{i + 1:02}" if len(docs) > 1 else ""
            with open(f"{directory}/{name}{number}.json", "w") as f:
                json.dump(doc, f)


if __name__ == "__main__":
    main(sys.argv[1])
