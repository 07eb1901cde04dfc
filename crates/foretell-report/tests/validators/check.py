"""Validates the files of a report with other people's tools: check.py FILES SCHEMAS"""
import json
import sys
from pathlib import Path

import jsonschema
import xmlschema
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

files, schemas = map(Path, sys.argv[1:])


def against(name, schema):
    document = json.loads((files / name).read_text())
    jsonschema.validate(document, json.loads((schemas / schema).read_text()))
    print(f"ok: {name} fits {schema}")


against("result.json", "result-1.schema.json")
against("report.sarif", "sarif-2.1.0.schema.json")
xmlschema.XMLSchema(schemas / "junit.xsd").validate(files / "junit.xml")
print("ok: junit.xml fits junit.xsd")

trace = perfetto_trace_pb2.Trace()
trace.ParseFromString((files / "report.perfetto-trace").read_bytes())
tracks = {packet.track_descriptor.uuid for packet in trace.packet if packet.HasField("track_descriptor")}
events = [packet for packet in trace.packet if packet.HasField("track_event")]
processes = [packet.track_descriptor.process.process_name for packet in trace.packet
             if packet.track_descriptor.HasField("process")]
assert any(name.startswith("recorded: ") for name in processes), processes
assert any(name.startswith("predicted: ") for name in processes), processes
open_slices, started, ended, last = {}, set(), set(), 0
for packet in events:
    event = packet.track_event
    assert packet.timestamp >= last, "time never goes back"
    last = packet.timestamp
    assert event.track_uuid in tracks, "every event is on a track"
    if event.type == event.TYPE_SLICE_BEGIN:
        assert event.name
        open_slices[event.track_uuid] = open_slices.get(event.track_uuid, 0) + 1
    else:
        open_slices[event.track_uuid] -= 1
        assert open_slices[event.track_uuid] >= 0, "what ends was begun"
    started.update(event.flow_ids)
    ended.update(event.terminating_flow_ids)
assert not any(open_slices.values()), "what was begun ends"
assert started and ended == started, "every flow goes from a write to its read"
print(f"ok: Perfetto's own definitions read {len(events)} track events and {len(started)} flows")
