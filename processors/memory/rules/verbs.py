"""The verbs that the rules of change know, as stems, and what they say of a thing."""

from __future__ import annotations

from processors.memory.rules.statement import stem
from processors.memory.rules.vocabulary import BEING, OPEN, STATES, TURNS
from processors.memory.rules.words import word_set

MODALS = word_set("must can may should has have had need needs got gets get")
VERBS = word_set(
    "go goe com tak mak giv us use liv run work read mak drink eat driv play lik lov prefer want ask tell support "
    "accept contain includ need requir expir last start begin open clos end return writ emit print send receiv stor "
    "sav keep kept hold own lead maintain manag report belong cost weigh mov chang switch set sit stand sleep wear "
    "speak studi study stud teach learn join leav left sell sold buy bought hand talk listen point call nam know meet "
    "met host serv deploy build built refresh fir reach allow forbid reject ignor respect enforc skip retri retry "
    "handl process schedul trigger happen plac upload publish releas ship merg commit push pull indent monitor sync "
    "fetch load pars render cut rais lower increas reduc extend postpon shift slip bump upgrad downgrad migrat "
    "convert rewrit rewrot rewritten renam replac remov delet drop disabl enabl turn retir cancel renew add becom "
    "becam adopt pick chos stop quit provid ride rode written sent found done taken given seen sort spell reset "
    "tighten hir spend"
)
LIGHT = (
    BEING
    | STATES
    | word_set("us use hav has had have get got do mak tak com go goe run provid perform find found reach")
)
"""What says little more of a value than that a thing has it."""
ONE_OBJECT = word_set("be run writ emit print return driv call nam spell cost liv rid weigh")
"""What has one object at a time."""
GOALS = word_set("go goe send sent belong writ report point assign rout connect talk log publish forward export com")
"""Verbs of which `to` names the goal, rather than what follows an adjective."""
OPEN_VERBS = OPEN | word_set("lik lov enjoy read learn know speak support play see saw us use drink eat sing watch")
"""What can be said of several objects at once."""
NEW_VERBS = (TURNS - word_set("set pass")) | word_set(
    "slip shift turn becam becom replac renew forward brought sold quit left leav join abandon cancel "
    "stop retir rotat tighten relax rais restor reassign swap promot demot"
)
"""Verbs that say that something is otherwise than before."""
IRREGULAR = word_set("rewritten rewrote cut became sold left brought quit gone took shrunk grown")
"""Past forms of such verbs that do not end in `ed`."""
PAST = word_set("was were did went found made saw broke ran wrote had")
"""What tells of an occasion."""
ENDINGS = word_set(
    "ended gone discontinued cancelled canceled retired sunset removed deleted abolished dropped closed expired "
    "revoked shut decommissioned deprecated"
)
"""What says that a thing is there no more."""
ENDING_STEMS = frozenset(map(stem, ENDINGS))
ALIKE_VERBS = tuple(
    map(
        word_set,
        (
            "writ emit print return output produc generat log",
            "stor keep kept hold sav retain persist retent liv resid",
            "own lead maintain manag head responsibl charg",
            "handl process perform do done car",
            "run execut start trigger fir schedul begin",
            "send sent go goe deliver forward post rout mail",
            "prefer want wish ask",
            "reach find found locat availabl be",
            "expir last end",
            "work employ job start",
            "call nam",
            "build built compil bundl",
        ),
    )
)
"""Verbs, and nouns of them, that say the same of a thing."""
BEGIN = word_set("begin start open launch")
END = word_set("end stop clos finish expir last")
