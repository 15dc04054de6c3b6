"""The endpoint under test, and the few helpers all scenarios share."""

import contextlib
import os
import re
import uuid
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableClient, TableServiceClient

ENDPOINT = os.environ["TABLES_ENDPOINT"].rstrip("/")
CREDENTIAL = AzureNamedKeyCredential(os.environ["TABLES_ACCOUNT"], os.environ["TABLES_KEY"])

# A failure must show at once: the SDK would repeat a 500 three times.
NO_RETRIES = {"retry_total": 0}


def secondary_host():
    """Host and path of the secondary endpoint: the account's name gets the suffix `-secondary`."""
    url, account = urlsplit(ENDPOINT), CREDENTIAL.named_key.name
    if url.path.strip("/") == account:
        return f"{url.netloc}/{account}-secondary"
    return url.netloc.replace(account, f"{account}-secondary", 1)


def service(credential=CREDENTIAL):
    return TableServiceClient(ENDPOINT, credential=credential, secondary_hostname=secondary_host(), **NO_RETRIES)


def table_client(name, credential=CREDENTIAL):
    return TableClient(ENDPOINT, name, credential=credential, **NO_RETRIES)


def with_sas(name, token):
    return table_client(name, AzureSasCredential(token))


def unique_name(prefix="Py"):
    return prefix + uuid.uuid4().hex[:20]


@contextlib.contextmanager
def temporary_table(name=None):
    """A new table, removed afterwards whatever happened."""
    table = table_client(name or unique_name())
    table.create_table()
    try:
        yield table
    finally:
        # The SDK swallows a missing table here.
        table.delete_table()


def expect(code, call, *args, **kwargs):
    """The error of a call that must be refused by the service with this code."""
    try:
        call(*args, **kwargs)
    except HttpResponseError as error:
        if code_of(error) != code:
            raise AssertionError(f"got {error.status_code} {code_of(error)}, expected {code}") from error
        return error
    raise AssertionError(f"was accepted, expected {code}")


def code_of(error):
    """The service's error code; `create_entity` raises errors the SDK did not decode."""
    decoded = getattr(error, "error_code", None)
    if decoded:
        return getattr(decoded, "value", decoded)
    found = re.search(r'"code":\s*"(\w+)"|<(?:m:)?[Cc]ode>(\w+)<', error.response.text() if error.response else "")
    return found and (found[1] or found[2])


def refused(kind, call, *args, **kwargs):
    """Demands that the SDK itself or the service refuses, with an exception of this kind."""
    try:
        call(*args, **kwargs)
    except kind:
        return
    raise AssertionError(f"was accepted, expected {kind}")


def exists(table, partition_key, row_key):
    try:
        table.get_entity(partition_key, row_key)
    except ResourceNotFoundError:
        return False
    return True


def keys(entities):
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def row_keys(entities):
    return [entity["RowKey"] for entity in entities]


def in_one_hour():
    return datetime.now(timezone.utc) + timedelta(hours=1)
