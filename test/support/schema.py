# Says where a JSON file breaks its schema, a line each; exit status 1 where it does.
#
#   schema.py SCHEMA SYSTEM JSON
#
# The schema refers to system.json beside it. How a validator finds such a file differs by its version, so the text is
# put into the schema first.
import json
import sys

from jsonschema import Draft202012Validator

schema_path, system_path, json_path = sys.argv[1:]
with open(schema_path, encoding="utf-8") as file:
    schema = json.loads(file.read().replace('"system.json#', '"#/$defs/system').replace('"system.json"', '"#/$defs/system"'))
with open(system_path, encoding="utf-8") as file:
    system = json.load(file)
system.pop("$schema")
schema["$defs"] = {"system": system}
Draft202012Validator.check_schema(schema)

with open(json_path, encoding="utf-8") as file:
    errors = list(Draft202012Validator(schema).iter_errors(json.load(file)))
for error in errors:
    print("/".join(map(str, error.absolute_path)) + ": " + error.message[:300])
sys.exit(1 if errors else 0)
