"""Shared access signatures, signed field by field so that a case can leave out, double or spoil any of them."""

from datetime import datetime, timedelta, timezone
from urllib.parse import quote

from wire import ACCOUNT, KEY, hmac_sha256

LAYOUT_2015 = ("sp", "st", "se", "resource", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")
LAYOUT_2012 = ("sp", "st", "se", "resource", "si", "sv", "spk", "srk", "epk", "erk")


def moment(seconds=3600, form="%Y-%m-%dT%H:%M:%SZ"):
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime(form)


def query(fields):
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())


def table_sas(table, sp="raud", key=KEY, **fields):
    """A table SAS; `si` given without `sp=None` keeps the permissions in the token. A field None is left out."""
    fields = {"sv": "2019-02-02", "tn": table, "sp": sp, "se": moment(), **fields}
    fields = {name: value for name, value in fields.items() if value is not None}
    modern = fields["sv"] >= "2015-02-21"
    resource = f"/table/{ACCOUNT}/{table.lower()}" if modern else f"/{ACCOUNT}/{table.lower()}"
    layout = LAYOUT_2015 if fields["sv"] >= "2015-04-05" else LAYOUT_2012
    lines = [resource if name == "resource" else fields.get(name, "") for name in layout]
    return query({**fields, "sig": hmac_sha256("\n".join(lines), key)})


def account_sas(sp="rwdlacu", ss="t", srt="sco", key=KEY, **fields):
    fields = {"sv": "2019-02-02", "ss": ss, "srt": srt, "sp": sp, "se": moment(), **fields}
    fields = {name: value for name, value in fields.items() if value is not None}
    layout = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] + (["ses"] if fields["sv"] >= "2020-12-06" else [])
    lines = [ACCOUNT] + [fields.get(name, "") for name in layout] + [""]
    return query({**fields, "sig": hmac_sha256("\n".join(lines), key)})
