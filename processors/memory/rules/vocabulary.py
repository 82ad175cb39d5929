"""The words by which the rules of change know what a statement says; mostly stems."""

from __future__ import annotations

import re

from processors.memory.rules.words import word_set

TURNS = word_set(
    "hand pass transf switch migr mov chang upgrad port convert transition renam rewritten rewrit rewrot rais lower "
    "increas reduc cut set upd downgrad reloc extend shorten transfer postpon delay adjust bump"
)
"""Verbs that say by themselves that something is otherwise than before, as stems."""
STATES = word_set(
    "be liv run work use written host stor kept keep go listen call sit hang stand belong stay deploy built buil bas"
)
"""Verbs after which a thing can have one value at a time."""
VAGUE = word_set("deadlin limit number count date amount all")
"""What names a property that its value names too."""
MODIFIES = frozenset(("with", "of"))
"""What says more of a value, where other relations tell in which case it holds."""
CASES = frozenset(("for", "if", "when"))
"""What says of which case alone something is said."""
BEING = word_set("start begin happen run liv stay sit stand go goe stor kept keep host locat loc serv send sent plac")
"""What says little more than that something is."""
AT = word_set("in on at with by as to under over through via into from be call nam prefer liv use")
"""What stands before a value that excludes others."""
PLACES = AT - word_set("be us use call nam prefer liv")
OWNS = word_set("own maintain lead chair manag head")
"""What one does alone."""
OPEN = word_set("has have contain includ need about against like know support find play eat depend hav had")
"""What can be said of several values at once."""
OCCASIONS = word_set("yourself himself herself found scored took went had made someth anyth")
"""What is told of an occasion, which the next one does not change, and what names no value."""
SOLE = word_set("responsibl charg current")
"""What of several only one is."""
PARTICIPLES = word_set(
    "sent written built kept made done run set put known seen taken given bought sold brought left found"
)
HAVE = word_set("has have had")
TIMES = frozenset(("number", "time"))
IS = frozenset(("is", "are"))
UNITS = word_set("kb mb gb tb ms s min percent eur usd chf euro dollar franc pound cent km m cm kg g hz mhz ghz")
BOUNDS = word_set(
    "abov below around than until befor after within onl exactl least most all ever last first next top past nearl "
    "roughl almost sinc"
)
"""Before a number that counts or bounds something, as stems."""
PIECES = word_set(
    "issu ticket pr bug task chapter section step pag item invoic question commit fact rul lesson kapitel "
    "schritt aufgab rechnung regel frag abschnitt 第"
)
"""What there are many of, to be dealt with one by one, as stems; also the word before a rank in Chinese."""
SCENES = word_set("production prod stag test develop dev local")
"""Where several of a kind run, each with its own values, as stems."""
TOWARDS = word_set(
    "go goe send sent belong write pin set point map bind bound limit assign rout connect default talk "
    "log publish upload forward export"
)
"""What `to` follows before a goal, rather than before a verb."""
GERUND = re.compile(r"\w{2,}[^r]ing|\w{3,}ring")
OPPOSITES = (
    ("open", "clos"),
    ("public", "priv"),
    ("availabl", "gon"),
    ("skip", "run"),
    ("on", "off"),
    ("enabl", "disabl"),
    ("allow", "forbidden"),
    ("allow", "prohibit"),
    ("requir", "optional"),
    ("mandator", "optional"),
    ("full", "empt"),
    ("activ", "inactiv"),
    ("valid", "invalid"),
    ("visibl", "hidden"),
    ("manual", "automatic"),
    ("synchronous", "asynchronous"),
    ("synchronousl", "asynchronousl"),
    ("manuall", "automaticall"),
    ("start", "stop"),
    ("alive", "dead"),
    ("up", "down"),
)
ON_OFF = frozenset(word for pair in OPPOSITES for word in pair)
CUTS = word_set("until sinc becaus after due")
TARGETS = frozenset(("to", "in", "into", "until"))
AUXILIARIES = frozenset(("hav", "has", "had", "'s"))
ENDS = AT | CUTS | word_set("last next until for")
"""Before what a new value ends."""
RESTRICTS = word_set("for on in at if when")
QUALITIES = word_set(
    "good bad great nice fast slow quick hot cold easy hard big small large long short new old cheap simple safe"
)
OF = word_set("about of for to")
PARTICIPLE = re.compile(r"\w{3,}ed")
PROPERTIES = word_set(
    "branch colour color nam languag format level mod status stat default favourit favorit them typ unit engin encod "
    "currenc manager linter formatter broker databas editor shell browser bundler compiler provider framework runner"
)
"""Of what is named so a word without an article is the value, as stems."""
QUALITY_ENDINGS = ("ful", "ive", "ous", "able", "ible", "less", "ish", "ic", "ing", "y")
AS_GIVEN_UP = (("instead", "of"), ("rather", "than"), ("in", "place", "of"))
TAKING = word_set("inherited")
TAKING_OVER = word_set("took takes taken taking")
"""Before `over … from`."""
LEAVING = word_set("left quit stopped dropped abandoned removed deleted retired gone closed")
NEWER_THAN = word_set("again only cheaper faster slower larger smaller longer shorter higher lower")
"""What says of a value that there was another one before."""
NAMED_BY_VALUE = word_set(
    "limit number count date amount all url address nam siz tim deadlin version valu level method mod format person "
    "main typ port current max maximum min minimum schedul internal tool system place budget timezon zon threshold "
    "region locat retent rate quota"
)
"""What names a property, and may be left out where the value says which one it is, as stems."""
SAYS_LITTLE = word_set("user us say said mention note update updat decision decid thing new old set lot")
QUALITY = re.compile(r"\w{2,}(?:ed|ful|ive|ous|able|ible|less|ish|ing)")
EVERYBODY = word_set("anyone anybody everyone everybody all")
_MORE_OPPOSITES = word_set(
    "respect/ignor accept/reject optional/mandatory experimental/stabl draft/final online/offlin local/remot "
    "fre/paid strict/lenient singl/married singl/engag vegan/eat vegetarian/eat includ/exclud allow/block support/drop "
    "availabl/retir availabl/deprecat availabl/remov handl/ignor hand/automaticall disabl/availabl encrypt/plain "
    "temporar/permanent liv/dead short/long brief/detail short/detail brief/long "
    "anyon/onl everybod/onl optional/mandator off/availabl"
)
CONTRARIES = frozenset(
    pair
    for one, other in (*OPPOSITES, *(tuple(pair.split("/")) for pair in _MORE_OPPOSITES))
    for pair in ((one, other), (other, one))
)
"""Stems that cannot be said of the same thing at once, in both orders."""
