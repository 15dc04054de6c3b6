"""Service properties, statistics and CORS. Each case puts the properties back as they were."""

import contextlib
import re

from registry import add, case
from report import same
from table import shared
from wire import send, secondary

XML = {"Accept": "application/xml", "Content_Type": "application/xml"}
PATH = "/?restype=service&comp=properties"
BOM = b"\xef\xbb\xbf"


def get_properties():
    return send("GET", PATH, Accept="application/xml").expect(200)


def set_properties(content):
    return send("PUT", PATH, f'<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>{content}</StorageServiceProperties>', **XML)


@contextlib.contextmanager
def restored():
    before = get_properties().text
    try:
        yield
    finally:
        send("PUT", PATH, before, **XML).expect(202)


def rule(origins, methods, allowed="", exposed="", age=60):
    return (f"<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods><MaxAgeInSeconds>{age}"
            f"</MaxAgeInSeconds><ExposedHeaders>{exposed}</ExposedHeaders><AllowedHeaders>{allowed}</AllowedHeaders></CorsRule>")


def element(name, text):
    """The content of an element of the properties."""
    found = re.search(f"<{name}>(.*?)</{name}>|<{name} ?/>", text, re.DOTALL)
    assert found, f"no {name} in {text}"
    return found[1] or ""


@case
def service_properties_reply():
    reply = get_properties().header("Content-Type", "application/xml")
    start = BOM + b'<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>'
    same(reply.body[:len(start)], start, "start of the body")
    names = re.findall(r"<(Logging|HourMetrics|MinuteMetrics|Cors|DefaultServiceVersion)\b", reply.text)
    same(names, ["Logging", "HourMetrics", "MinuteMetrics", "Cors"], "elements")


@case
def service_properties_children_in_any_order():
    with restored():
        set_properties("<Logging><Delete>true</Delete><RetentionPolicy><Days>5</Days><Enabled>true</Enabled></RetentionPolicy>"
                       "<Write>false</Write><Read>true</Read><Version>1.0</Version></Logging>").expect(202)
        same(element("Logging", get_properties().text), "<Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>true</Delete>"
             "<RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy>")


@case
def service_properties_keep_what_is_omitted():
    with restored():
        set_properties("<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy>"
                       "<Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>").expect(202)
        before = element("HourMetrics", get_properties().text)
        set_properties("<Cors>" + rule("http://a.example", "GET", "x-a", "x-b") + "</Cors>").expect(202)
        same(element("HourMetrics", get_properties().text), before)
        assert "http://a.example" in get_properties().text, "the rule is missing"
        set_properties("<Cors />").expect(202)
        same(element("Cors", get_properties().text), "")


@case
def service_properties_of_cors():
    with restored():
        set_properties("<Cors>" + rule("http://a.example,http://b.example", "GET,PUT", "x-ms-meta-a*,x-ms-b,x-c") + "</Cors>").expect(202)
        same(element("CorsRule", get_properties().text), "<AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://a.example,"
             "http://b.example</AllowedOrigins><AllowedHeaders>x-ms-b,x-c,x-ms-meta-a*</AllowedHeaders><ExposedHeaders />"
             "<MaxAgeInSeconds>60</MaxAgeInSeconds>")


def retention(days):
    return ("<MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true"
            f"</Enabled><Days>{days}</Days></RetentionPolicy></MinuteMetrics>")


BAD = {
    "days_0": (retention(0), "InvalidXmlDocument"), "days_366": (retention(366), "InvalidXmlDocument"),
    "six_rules": ("<Cors>" + rule("http://a.example", "GET", "x-a", "x-b") * 6 + "</Cors>", "InvalidXmlDocument"),
    "unclosed": ("<Cors>", None), "unknown_method": ("<Cors>" + rule("*", "FETCH", "x-a", "x-b") + "</Cors>", None),
    "negative_age": ("<Cors>" + rule("*", "GET", "x-a", "x-b", age=-1) + "</Cors>", None),
    "not_a_boolean": ("<Logging><Version>1.0</Version><Read>maybe</Read><Write>true</Write><Delete>true</Delete><RetentionPolicy>"
                      "<Enabled>false</Enabled></RetentionPolicy></Logging>", None),
}


def refused(content, code):
    def check():
        with restored():
            before = get_properties().text
            set_properties(content).expect(400, code)
            same(get_properties().text, before, "properties afterwards")
    return check


for name, (content, code) in BAD.items():
    add(f"service_properties_refused_{name}", refused(content, code))


@case
def service_properties_not_xml():
    for body in ("hello", "<a", ""):
        send("PUT", PATH, body, **XML).expect(400)


@case
def service_stats_on_secondary():
    reply = send("GET", "/?restype=service&comp=stats", endpoint=secondary(), Accept="application/xml").expect(200)
    reply.header("Content-Type", "application/xml")
    pattern = (r'<\?xml version="1\.0" encoding="utf-8"\?><StorageServiceStats><GeoReplication><Status>(live|bootstrap|unavailable)</Status>'
               r"<LastSyncTime>(\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT)?</LastSyncTime></GeoReplication></StorageServiceStats>")
    assert re.fullmatch(pattern, reply.text), f"body {reply.text!r}"


@case
def service_unknown_comp():
    send("GET", "/?restype=service&comp=nonsense", Accept="application/xml").expect(400)


# CORS: preflight and actual requests. The rules: one for two origins, one for anyone's GET.
RULES = ("<Cors>" + rule("http://a.example,http://b.example", "GET,PUT,MERGE", "x-ms-*,content-type", "x-ms-request-id", 77)
         + rule("*", "GET", "x-ms-date", "x-ms-version") + "</Cors>")


def preflight(**headers):
    named = {name.replace("origin", "Origin"): value for name, value in headers.items()}
    return send("OPTIONS", f"/{shared().name}()", sign=None, x_ms_version=None, x_ms_date=None, Accept=None, **named)


def with_rules(check):
    def run():
        with restored():
            set_properties(RULES).expect(202)
            check()
    run.__name__ = check.__name__
    return case(run)


@with_rules
def cors_preflight_of_an_origin():
    reply = preflight(origin="http://a.example", Access_Control_Request_Method="PUT",
                      Access_Control_Request_Headers="x-ms-date,content-type").expect(200)
    reply.header("Access-Control-Allow-Origin", "http://a.example").header("Access-Control-Allow-Methods", "PUT")
    reply.header("Access-Control-Allow-Headers", "x-ms-date,content-type").header("Access-Control-Max-Age", "77")
    reply.header("Access-Control-Allow-Credentials", "true")


@with_rules
def cors_preflight_of_anyone():
    reply = preflight(origin="http://other.example", Access_Control_Request_Method="GET").expect(200)
    reply.header("Access-Control-Allow-Origin", "*").header("Access-Control-Max-Age", "60")
    reply.no_header("Access-Control-Allow-Credentials")


@with_rules
def cors_preflight_refused():
    for headers in ({"origin": "http://other.example", "Access_Control_Request_Method": "PUT"},
                    {"origin": "http://a.example", "Access_Control_Request_Method": "DELETE"},
                    {"origin": "http://A.example", "Access_Control_Request_Method": "PUT"},
                    {"origin": "http://a.example", "Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "x-other"}):
        preflight(**headers).expect(403, "CorsPreflightFailure").no_header("Access-Control-Allow-Origin")


@with_rules
def cors_preflight_without_its_headers():
    preflight(origin="http://a.example").expect(400, "InvalidHeaderValue")
    preflight(Access_Control_Request_Method="GET").expect(400, "InvalidHeaderValue")


@case
def cors_preflight_without_rules():
    with restored():
        set_properties("<Cors />").expect(202)
        preflight(origin="http://a.example", Access_Control_Request_Method="GET").expect(403, "CorsPreflightFailure")


@with_rules
def cors_actual_request():
    reply = shared().query(options="$top=1", Origin="http://a.example").expect(200)
    reply.header("Access-Control-Allow-Origin", "http://a.example").header("Access-Control-Expose-Headers", "x-ms-request-id")
    reply.header("Access-Control-Allow-Credentials", "true").header("Vary", "Origin")


@with_rules
def cors_actual_request_without_a_rule():
    shared().post({"PartitionKey": "p", "RowKey": "cors"}, Origin="http://other.example").expect((201, 409)).no_header(
        "Access-Control-Allow-Origin")
