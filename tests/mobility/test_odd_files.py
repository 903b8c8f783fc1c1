"""Odd and hostile files, as people have them: each is read as a person would, or refused.

A case is a name, the content, the flags, and the contacts that must come out (`a,b,start,end`) or
a part of the message with which it must be refused.
"""

from __future__ import annotations

import gzip

import pytest

from beforehand.cli import main

MEET = ["a,b,466.666667,600"]
BODY = "a,0,0,0\na,600,0,0\nb,0,900,0\nb,600,0,0\n"
RANGE = ("--range", "200m")
PAIR = ["a,b,1,2.500000"]

HEADERS_OF_POSITIONS = [
    ("id time x y", "id,time,x,y\n" + BODY, RANGE, MEET),
    ("capitals", "Node,T,X,Y\n" + BODY, RANGE, MEET),
    ("spaces in names", "Vehicle ID, Time , X-Pos, Y-Pos\n" + BODY, RANGE, MEET),
    ("units in names", "node,time (s),x [m],y [m]\n" + BODY, RANGE, MEET),
    (
        "milliseconds and kilometres",
        "node,time_ms,x_km,y_km\na,0,0,0\na,600000,0,0\nb,0,0.9,0\nb,600000,0,0\n",
        RANGE,
        MEET,
    ),
    ("semicolons", ("node;t;x;y\n" + BODY.replace(",", ";")), RANGE, MEET),
    ("tabs", ("node\tt\tx\ty\n" + BODY.replace(",", "\t")), RANGE, MEET),
    ("white space", ("node  t x   y\n" + BODY.replace(",", "  ")), RANGE, MEET),
    ("pipes", ("node|t|x|y\n" + BODY.replace(",", "|")), RANGE, MEET),
    ("crlf and a mark", "\ufeffnode,t,x,y\r\n" + BODY.replace("\n", "\r\n"), RANGE, MEET),
    ("a header in a comment", "# node,t,x,y\n" + BODY, RANGE, MEET),
    ("quoted names", '"node","t","x","y"\n' + BODY.replace("a,", '"a",'), RANGE, MEET),
    ("a better name than id", "id,node,t,x,y\n1,a,0,0,0\n2,a,9,0,0\n", RANGE, []),
    ("no name for the index", "\tnode\tt\tx\ty\n0\ta\t0\t0\t0\n1\ta\t9\t0\t0\n", RANGE, []),
    ("one day", "node,day,t,x,y\na,1,0,0,0\na,1,9,0,0\n", RANGE, []),
    ("days that times count too", "node,day,t,x,y\na,1,0,0,0\na,2,90000,0,0\n", RANGE, []),
    ("velocities", "node,t,x,y,vx,vy\na,0,0,0,1,1\na,9,0,0,1,1\n", RANGE, []),
    (
        "across the date line",
        "node,time,latitude,longitude\na,0,0,179.9999\na,9,0,179.9999\nb,0,0,-179.9999\n"
        "b,9,0,-179.9999\n",
        RANGE,
        ["a,b,0,9"],
    ),
    (
        "dates",
        "device,timestamp,lat,lng\na,1970-01-01T00:00:00,0,0\na,1970-01-01T00:00:09,0,0\n"
        "b,1970-01-01T02:00:00+02:00,0,0\nb,1970-01-01T00:00:09Z,0,0\n",
        RANGE,
        ["a,b,0,9"],
    ),
]
REFUSED_POSITIONS = [
    ("no range", "id,time,x,y\n" + BODY, (), "pass `--range 200m`"),
    ("longitude 181", "node,t,lon,lat\na,0,181,0\na,9,0,0\n", RANGE, "longitude beyond ±180"),
    ("latitude 91", "node,t,lon,lat\na,0,0,91\na,9,0,0\n", RANGE, "latitude beyond ±90"),
    (
        "days apart from times",
        "node,date,time,x,y\na,20240101,100,0,0\na,20240102,200,0,0\n",
        RANGE,
        "the times of 2 days, which stand in a column of their own: `date`",
    ),
    ("the line of it", "node,t,lon,lat\na,0,0,0\na,9,0,-91\n", RANGE, "odd.txt:3"),
    ("from pole to pole", "node,t,lon,lat\na,0,0,-80\na,9,0,85\n", RANGE, "too wide an area"),
    ("x of 1e308", "node,t,x,y\na,0,1e308,0\na,9,0,0\n", RANGE, "more than 100,000 km away"),
    ("1e9 apart", "node,t,x,y\na,0,-5e8,0\na,9,5e8,0\n", RANGE, "odd.txt:2"),
    ("x is no number", "node,t,x,y\na,0,one,0\n", RANGE, "not a number: `one`"),
    ("x is nan", "node,t,x,y\na,0,nan,0\n", RANGE, "not a finite number"),
    ("decimal comma", "node;t;x;y\na;0;1,5;0\n", RANGE, "write `1.5`"),
    ("no y", "node,t,x\na,0,1\n", RANGE, "no column `y` in the header: node,t,x"),
    ("no node", "t,x,y\n0,1,1\n", RANGE, "no column `node`"),
    ("no time", "node,x,y\na,0,1\n", RANGE, "no column `time`"),
    ("what is known is listed", "node,x,y\na,0,1\n", RANGE, "time, t, timestamp, ts"),
    ("two times", "time,timestamp,node,x,y\n0,0,a,0,1\n", RANGE, "two columns for `time`"),
    ("two units", "node,t,x_m,y_km\na,0,0,1\n", RANGE, "different units"),
    ("a short row", "node,t,x,y\na,0,1\n", RANGE, "3 fields under a header of 4"),
    ("a long row", "node,t,x,y\na,0,1,2,3\n", RANGE, "5 fields under a header of 4"),
    ("no name", "node,t,x,y\n,0,1,2\n", RANGE, "a node without a name"),
    ("no rows", "node,t,x,y\n", RANGE, "no rows after the header"),
    ("one row each", "node,t,x,y\na,0,0,0\nb,0,0,0\n", RANGE, "no node is present at any time"),
    ("before zero", "node,t,x,y\na,-5,0,0\na,5,0,0\n", RANGE, "a time before zero"),
    ("milliseconds", "node,t,x,y\na,1700000000000,0,0\n", RANGE, "name its column `time_ms`"),
    ("range of nothing", "node,t,x,y\n" + BODY, ("--range", "0m"), "longer than zero"),
    ("long ways", "node,t,x,y\na,0,-9e7,0\na,9,9e7,0\n", ("--range", "1m"), "too long for a"),
    ("range of light", "node,t,x,y\n" + BODY, ("--range", "50000km"), "Earth's circumference"),
    ("slot of places", "node,t,x,y\n" + BODY, (*RANGE, "--slot", "5s"), "at --slot"),
    ("far walk", "0 100 0 9 0 9\n0 1 1e300 5\n", RANGE, "more than 100,000 km away"),
    ("far motion", "0 1 2 60 1e9 4\n0 5 5 60 5 5 90 1 1\n", RANGE, "more than 100,000 km away"),
    ("far script", '$ns_ at 2.0 "$node_(0) setdest 1e12 0 2"\n', RANGE, "100,000 km away"),
    ("slow script", '$ns_ at 2.0 "$node_(0) setdest 9 0 1e-290"\n', RANGE, "it arrives after"),
]
CONTACTS_AND_SIGHTINGS = [
    ("times first", "start,end,a,b\n1,2.5,a,b\n", (), PAIR),
    ("source and target", "Source,Target,Begin,Stop\na,b,1,2.5\n", (), PAIR),
    ("a duration", "node1,node2,start,duration\na,b,1,1.5\n", (), PAIR),
    ("a duration before the end", "duration,end,i,j\n1.5,2.5,a,b\n", (), PAIR),
    ("a time and a duration", "time,user_a,user_b,duration\n1,a,b,1.5\n", (), PAIR),
    ("from and to as nodes", "from,to,start,end\na,b,1,2.5\n", (), PAIR),
    ("from and to as times", "a,b,from,to\na,b,1,2.5\n", (), PAIR),
    ("host and seen", "HostID;SeenID;StartTime;EndTime\na;b;1;2.5\n", (), PAIR),
    ("our own columns", "a,b,up_us,down_us\na,b,1000000,2500000\n", (), PAIR),
    ("minutes", "a,b,start [min],end [min]\na,b,1,2\n", (), ["a,b,60,120"]),
    ("a column called kind", "a,b,start,end,kind\na,b,1,2.5,bluetooth\n", (), PAIR),
    ("no header", "a b 1 2.5\n", (), PAIR),
    ("no header, tabs that align", "a\t\tb\t1\t2.5\n", (), PAIR),
    ("no header, names with spaces", "a b\tc d\t1\t2\n", (), ["a b,c d,1,2"]),
    ("no header, quotes", '"a b","c, d",1,2\n', (), ['a b,"c, d",1,2']),
    ("spaces beside quotes", '"a" ,b ,1,2\na,"b", 1 ,2.5\n', (), PAIR),
    ("events in small letters", "1 conn a b up\n2.5 conn a b down\n", (), PAIR),
    ("who saw whom", "t,i,j\n40,a,b\n60,b,a\n", (), ["a,b,20,60"]),
    ("classes", "t\ti\tj\tCi\tCj\n40\ta\tb\tMX\tPC\n", (), ["a,b,20,40"]),
    ("a commented header", "# t i j\n40 1 2\n", (), ["1,2,20,40"]),
    ("a slot", "t,i,j\n400,a,b\n700,a,b\n", ("--slot", "5m"), ["a,b,100,700"]),
    ("from zero on", "timestamp,user_a,user_b,rssi\n0,1,2,-70\n", (), ["1,2,0,20"]),
    ("saw nobody", "timestamp,user_a,user_b,rssi\n0,1,2,-7\n0,3,-1,0\n", (), ["1,2,0,20"]),
    ("up and down", "time,a,b,event\n1,a,b,up\n2.5,b,a,down\n", (), PAIR),
    ("connected", "node1;node2;t;state\na;b;1;1\na;b;2.5;0\n", (), PAIR),
    ("never down", "t,a,b,x\n1,a,b,Up\n2.5,c,d,UP\n", (), PAIR),
    ("a one of no state", "t,i,j,same\n20,a,b,1\n40,a,b,0\n", (), ["a,b,0,40"]),
    ("comments of other tools", "% t i j\n20 a b\n// 30 a b\n40 a b\n", (), ["a,b,0,40"]),
    ("a peer by its address", "mac,peer mac,time\na,b,20\n", (), ["a,b,0,20"]),
    (
        "a weight and a time",  # as KONECT has them: no contact of forty years
        "% sym weighted\n1 2 1 1262454010\n2 3 4 1262454030\n",
        (),
        ["1,2,1262453990,1262454010", "2,3,1262454010,1262454030"],
    ),
    ("instants", "a b 1 1\na b 5 6\n", (), ["a,b,5,6"]),
    ("instants that last", "a b 1 1\na b 5 5\n", ("--slot", "2s"), ["a,b,1,3", "a,b,5,7"]),
    (
        "presence",
        "a,b,start,end,kind\na,,0,5,presence\nb,,2,9,presence\na,b,2,5,contact\n",
        (),
        ["a,b,2,5"],
    ),
]
REFUSED_CONTACTS = [
    ("a range for contacts", "start,end,a,b\n1,2,a,b\n", RANGE, "no range applies"),
    ("a range for a list", "1 2 3 4\n", RANGE, "node,t,x,y"),
    ("a range for sightings", "20 1 2\n40 1 2\n", RANGE, "no range applies"),
    ("no end", "a,b,start\na,b,1\n", (), "no column `end`"),
    ("no second node", "a,start,end\na,1,2\n", (), "no column `a` and no column `b`"),
    (
        "unknown names",
        "foo,bar,baz,qux\na,b,1,2\n",
        (),
        "neither places nor two nodes in the header",
    ),
    ("least and most", "a,b,t_min,t_max\na,b,1,2\n", (), "no column `start` and no column `end`"),
    ("two pairs", "a,b,i,j,t\n1,2,3,4,5\n", (), "more than one pair of nodes"),
    ("both kinds", "a,b,node,t,x,y\n1,2,3,4,5,6\n", (), "both positions and contacts"),
    ("another format", "t,i,j\n40,a,b\n", ("--format", "contacts"), "one of `sociopatterns`"),
    ("only instants", "a b 1 1\na b 5 5\n", (), "`--slot 20s`"),
    (
        "an endless slot",
        "20 1 2\n40 1 2\n",
        ("--slot", "99999999d"),
        "is not a valid length of time",
    ),
    ("no slot at all", "20 1 2\n40 1 2\n", ("--slot", "0s"), "longer than zero"),
    ("backwards", "start,end,a,b\n9,3,a,b\n", (), "contact ends before it starts: from 9 to 3"),
    ("from before zero", "a,b,end,duration\na,b,1,5\n", (), "from before zero on"),
    ("two kinds of names", "a,b,start,end,kind\na,,0,5,presence\na,b,1,2,x\n", (), "neither `con"),
    (
        "never there",
        "a,b,start,end,kind\na,,0,5,presence\na,b,1,2,contact\n",
        (),
        "node `b` has a contact and is never present",
    ),
    (
        "twice there",
        "a,b,start,end,kind\na,,0,5,presence\na,,4,9,presence\n",
        (),
        "there twice at one time",
    ),
    (
        "presence said twice",
        "a,b,start,end,kind\na,,0,5,presence\n",
        ("--presence", "seen"),
        "the file itself defines the presence of nodes",
    ),
    ("neither up nor down", "t,a,b,e\n1,a,b,up\n2,a,b,dwon\n", (), "neither up nor down: `dwon`"),
    ("no such presence", "a b 1 2\n", ("--presence", "maybe"), "no such presence: `maybe`"),
    ("a day of contacts", "a b 1 2\n", ("--day", "2024-01-01"), "at --day"),
    ("nothing", "", (), "nothing in the file"),
    ("half a zip", b"PK\x03\x04\xff\xfe half of it", (), "a broken zip"),
    ("only comments", "# nothing\n", (), "nothing in the file"),
    ("prose", "what is this\nnobody knows\n", (), "the format is unknown"),
    ("times of day", "a,b,start,end\nann,bob,08:00,09:00\n", (), "`08:00`; write a date and"),
    ("no such date", "t,i,j\n2024-13-01T00:00,a,b\n", (), "no such date"),
    ("strict", "a b 1 5\na b 3 9\n", ("--strict",), "odd.txt:2"),
]
READ = [*HEADERS_OF_POSITIONS, *CONTACTS_AND_SIGHTINGS]
REFUSED = [*REFUSED_POSITIONS, *REFUSED_CONTACTS]


def run(tmp_path, content, flags):
    path, out = tmp_path / "odd.txt", tmp_path / "out.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return main(["contacts", str(path), *flags, "--out", str(out)]), out


def contacts_in(out):
    rows = [line for line in out.read_text().splitlines() if line.endswith(",contact")]
    plain = [row.removesuffix(",contact").replace('"c, d"', "<>").replace('"', "") for row in rows]
    return [row.replace("<>", '"c, d"') for row in plain]


def test_enough_cases_are_generated():
    assert len(READ) + len(REFUSED) >= 60
    assert len({case[0] for case in READ + REFUSED}) == len(READ) + len(REFUSED)


@pytest.mark.parametrize(
    ("content", "flags", "expected"), [c[1:] for c in READ], ids=[c[0] for c in READ]
)
def test_an_odd_file_is_read_as_a_person_would(tmp_path, capsys, content, flags, expected):
    code, out = run(tmp_path, content, flags)
    told = capsys.readouterr().err
    assert code == 0, told
    assert contacts_in(out) == expected
    assert told.startswith("read as ")


@pytest.mark.parametrize(
    ("content", "flags", "fragment"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_a_file_without_a_sensible_reading_is_refused(tmp_path, capsys, content, flags, fragment):
    code, out = run(tmp_path, content, flags)
    told = capsys.readouterr()
    assert code == 2
    assert told.err.startswith("error: ")
    assert fragment in told.err
    assert told.out == ""
    assert not out.exists()


def test_implausible_speeds_are_reported(tmp_path, capsys):
    content = "node,t,lat,lon\na,0,41,-8\na,60,41,-3\na,90,41,-3\nb,0,41,-8\nb,90,41,-8\n"
    assert run(tmp_path, content, RANGE)[0] == 0
    told = capsys.readouterr().err
    assert "though 1 ways are faster than 150 m/s: `a` goes 419.6 km at 6,993 m/s" in told


def test_degrees_in_columns_of_metres_are_reported(tmp_path, capsys):
    content = "node,t,x,y\na,0,-8.61,41.1\na,60,-8.62,41.2\nb,0,-8.5,41.15\nb,90,-8.5,41.1\n"
    assert run(tmp_path, content, RANGE)[0] == 0
    assert "all places lie within 0.12 m (degrees?" in capsys.readouterr().err


def test_the_length_of_no_contacts_is_a_dash(tmp_path, capsys):
    path = tmp_path / "far.csv"
    path.write_text("node,t,x,y\na,0,0,0\na,9,0,0\nb,0,900,0\nb,9,900,0\n")
    assert main(["contacts", str(path), *RANGE]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "contact avg" in line]
    assert [line.split()[-2] for line in lines] == ["–"]
    assert main(["contacts", str(path), *RANGE, "--json"]) == 0
    assert '"contact_s_avg": null' in capsys.readouterr().out


def test_a_file_may_be_packed(tmp_path, capsys):
    code, out = run(tmp_path, gzip.compress(b"t\ti\tj\n40\ta\tb\n"), ())
    assert code == 0
    assert contacts_in(out) == ["a,b,20,40"]
    assert run(tmp_path, gzip.compress(b"t i j\n40 a b\n")[:-9], ())[0] == 2
    assert "a broken gzip" in capsys.readouterr().err
