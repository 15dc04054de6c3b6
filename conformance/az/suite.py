"""A few commands of azure-cli against one table, in the order a person would type them."""

import json
import os
import subprocess
import sys
import tempfile
import uuid

from report import main, same

ENDPOINT, ACCOUNT, KEY = (os.environ[name] for name in ("TABLES_ENDPOINT", "TABLES_ACCOUNT", "TABLES_KEY"))
CONNECTION = (f"DefaultEndpointsProtocol={ENDPOINT.split(':')[0]};AccountName={ACCOUNT};AccountKey={KEY};"
              f"TableEndpoint={ENDPOINT.rstrip('/')};")
TABLE = "Az" + uuid.uuid4().hex[:20]
ENTITY = ["--partition-key", "p", "--row-key", "it's r"]
EXPIRY = "2099-01-01T00:00:00Z"


def environment(config):
    """Nothing but the endpoint may be called: no telemetry, no survey, no search for extensions."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "AZURE_STORAGE_CONNECTION_STRING")}
    return {**kept, "AZURE_CONFIG_DIR": config, "AZURE_CORE_COLLECT_TELEMETRY": "0", "AZURE_CORE_SURVEY_MESSAGE": "0",
            "AZURE_CORE_ONLY_SHOW_ERRORS": "1", "AZURE_CORE_NO_COLOR": "1", "AZURE_CORE_DISABLE_PROGRESS_BAR": "1",
            "AZURE_EXTENSION_USE_DYNAMIC_INSTALL": "no", "PYTHONWARNINGS": "ignore"}


def az(*arguments, sas=None):
    """Runs `az storage ...` with the connection string, or with a SAS, and returns its JSON."""
    login = ["--connection-string", CONNECTION]
    if sas:
        login = ["--connection-string", f"TableEndpoint={ENDPOINT.rstrip('/')};SharedAccessSignature={sas}"]
    done = subprocess.run([sys.executable, "-m", "azure.cli", "storage", *arguments, *login, "--output", "json"],
                          env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise AssertionError(f"az {' '.join(arguments[:2])}: {' '.join(errors)}")
    return json.loads(done.stdout) if done.stdout.strip() else None


def shown(**login):
    entity = az("entity", "show", "-t", TABLE, *ENTITY, **login)
    return {name: value for name, value in entity.items() if name not in ("PartitionKey", "RowKey", "Timestamp", "etag")}


def az_table_create():
    same(az("table", "create", "-n", TABLE), {"created": True})


def az_table_exists():
    same(az("table", "exists", "-n", TABLE), {"exists": True})


def az_table_list():
    assert TABLE in [table["name"] for table in az("table", "list")], "the new table is not listed"


def az_entity_insert_and_show():
    az("entity", "insert", "-t", TABLE, "-e", "PartitionKey=p", "RowKey=it's r", "Name=Ann", "Age=39", "Age@odata.type=Edm.Int32")
    same(shown(), {"Name": "Ann", "Age": 39})


def az_entity_merge_and_query():
    az("entity", "merge", "-t", TABLE, "-e", "PartitionKey=p", "RowKey=it's r", "City=Roma")
    found = az("entity", "query", "-t", TABLE, "--filter", "PartitionKey eq 'p' and City eq 'Roma'")["items"]
    same([(row["Name"], row["City"]) for row in found], [("Ann", "Roma")])


def az_entity_replace():
    az("entity", "replace", "-t", TABLE, "-e", "PartitionKey=p", "RowKey=it's r", "Only=x")
    same(shown(), {"Only": "x"})


def az_policy_create_and_list():
    az("table", "policy", "create", "-t", TABLE, "-n", "reader", "--permissions", "r", "--expiry", EXPIRY)
    policies = az("table", "policy", "list", "-t", TABLE)
    same(list(policies), ["reader"])
    same((policies["reader"]["permission"], policies["reader"]["expiry"][:10]), ("r", EXPIRY[:10]))


def az_generate_sas_and_use_it():
    token = az("table", "generate-sas", "-n", TABLE, "--permissions", "r", "--expiry", EXPIRY)
    same(shown(sas=token), {"Only": "x"})


def az_entity_delete():
    az("entity", "delete", "-t", TABLE, *ENTITY)
    same(az("entity", "query", "-t", TABLE)["items"], [])


def az_table_delete():
    same(az("table", "delete", "-n", TABLE), {"deleted": True})


with tempfile.TemporaryDirectory() as config:
    ENVIRONMENT = environment(config)
    main({scenario.__name__: scenario for scenario in (
        az_table_create, az_table_exists, az_table_list, az_entity_insert_and_show, az_entity_merge_and_query, az_entity_replace,
        az_policy_create_and_list, az_generate_sas_and_use_it, az_entity_delete, az_table_delete)})
