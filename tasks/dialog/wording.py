"""Reads what users write: signs, numbers, everyday words and typing errors.

A bot knows the few hundred words of its training dialogs. Here other words become known ones:
"4" is "four", "yep" is "yes", "spannish" is "spanish". Each step is a list of patterns or a table,
so `tasks.dialog.export` applies the same ones in a graph.
"""

import functools
import re

from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.normalization import INVISIBLE
from colloquy.data.tokenizers import apply_rules, normalize

SIGNS = ".,;:!?\"()\\[\\]{}<>*/\\\\|=+~^_…\u2013—'-"
"""Signs around words, for a class of a pattern."""
ENDS = f"^[{SIGNS}]+|[{SIGNS}]+$"
BETWEEN = '[,;:!?"()\\[\\]{}<>*/\\\\|=+~^…\u2013—]+' + r"|\.{2,}|'{2,}|\b[0-9]\)"
"""Signs that part words wherever they are. Hyphens, full stops and apostrophes may be inside."""
NO_WORD = "?"
"""What a text of signs is read as."""

# === Other words for known ones ===
# `known words <- other words | ...`. The lines are applied in order. Patterns are those of RE2.

OTHER_WORDS = r"""
- <- then|just|wow|honestly|so|also|i (?:think|guess|suppose|believe)|i'd say|to be honest|um+|uh+
- <- er+|ah+|mm+|hm+
- <- kinda|man|mate|bro|dude|buddy|guys|bot|sir|madam|dear|lol|haha|btw|simply|maybe we can|indeed
i will <- i'll
we will <- we'll
we are <- we're|we r
it is <- it'll be
that will <- that'll
you are <- you're
there are <- there's
what is <- what's|whats
let me <- lemme
let's <- let us|lets
give me <- gimme
want to <- wanna|would love to
can i have <- can i get|could i get|could i have|could we have|could we get|can we get
have <- got|'ve got
to <- 2 (?:eat|book)
you <- u|ya
please <- pls|plz|plse|pleas|pleeease
thanks <- thx|tnx|thnx|thanx|ty|ta|tks|thank u|thanks a bunch|thanks a million|much appreciated
thank you <- thankyou|appreciate it|i appreciate it|you have been helpful|you've been helpful
hello <- hiya|heya|yo|howdy|sup|wassup|greetings|hola|hullo|helo|ey|whats up|what's up
you rock <- i love you|you are (?:great|nice|the best|awesome|wonderful|sweet|kind|so kind|a star)
thanks <- (?:ok|okay|alright|all right),? (?:thanks|thank you|cheers)
goodbye <- (?:that's|that is|that will be|that would be) (?:all|it)(?: for now| for today)?
bye <- good ?night|cya|see ya|later|laters|ciao|cheerio|farewell|take care|ttyl|so long|adios
bye <- bye bye
bye <- talk (?:to you )?later|catch you later|see you (?:later|soon|around)|have a good [a-z]+
bye <- have a great [a-z]+|have a lovely [a-z]+|i have to go|i must go|i've got to go|gotta go

four <- (?:2|two) couples|double date
six <- (?:3|three) couples
eight <- (?:4|four) couples
four <- (?:me|myself) (?:and|plus|with) (?:my )?(?:3|three) (?:friends|kids|children|others)
six <- (?:me|myself) (?:and|plus|with) (?:my )?(?:5|five) (?:friends|kids|children|others)
eight <- (?:me|myself) (?:and|plus|with) (?:my )?(?:7|seven) (?:friends|kids|children|others)
six people <- half a dozen
two <- a couple of|a couple|couple|the both of us|both of us|just us two|a pair of
we are two <- (?:my|me and my) (?:wife|husband|girlfriend|boyfriend|partner) and (?:me|i)
we are two <- (?:just )?(?:me and my|myself and my) (?:wife|husband|girlfriend|boyfriend|partner)
two people <- (?:2|two) ?(?:ppl|p|pax|persons?|guests?|peeps|heads|adults|seats|diners)
four people <- (?:4|four) ?(?:ppl|p|pax|persons?|guests?|peeps|heads|adults|seats|diners)
six people <- (?:6|six) ?(?:ppl|p|pax|persons?|guests?|peeps|heads|adults|seats|diners)
eight people <- (?:8|eight) ?(?:ppl|p|pax|persons?|guests?|peeps|heads|adults|seats|diners)
two <- 2|0?2x|x2|twosome|duo
four <- 4|x4|foursome
six <- 6|x6
eight <- 8|x8
people <- ppl|persons?|guests?|peeps|pax|heads|adults|seats|diners|folks|friends|colleagues

moderate <- (?:not|nothing|isn't) (?:too|so|very|that|really) (?:expensive|pricey|costly|fancy|posh)
moderate <- (?:not|nothing) (?:too|so|very|that|overly) cheap|neither cheap nor expensive
moderate <- not cheap not expensive
cheap <- (?:not|nothing|isn't) (?:expensive|pricey|pricy|costly|fancy|posh)
moderate <- moderately[- ]priced|reasonably[- ]priced|mid[- ]?(?:range|priced?|level)
moderate <- medium(?:[- ]priced?)?
moderate <- moderately|average|reasonable|modest|in the middle|middle of the road|middling
moderate <- fairly priced
expensive <- pricey|pricy|costly|posh|fancy|upscale|upmarket|high[- ]end|luxury|luxurious|swanky
expensive <- classy
expensive <- high[- ]priced|top[- ]end|deluxe|premium|exclusive|splurge|splash out|dearer
expensive <- fine dining
cheap <- low[- ]cost|low[- ]priced?|inexpensive|on a budget|low[- ]budget|budget|affordable
cheap <- economical
cheap <- cheapo|cheaper|cheapest|bargain|cheapish|frugal|thrifty|dirt cheap|less expensive
cheap <- on the cheap

actually <- (?:how|what) about|switch (?:it )?to|swap (?:it )?(?:to|for)|move (?:it )?to|hold on
actually <- on second thought
actually <- scrap that|change of plans?|let's say|i mean|my mistake|my bad|oops|whoops|turns out
actually <- hang on
restaurant <- joint|eatery|bistro|venue|resto|diner
place <- spot|spots|somewhere nice|places|restaurants|hole in the wall
food <- grub|nosh|dishes|dish|meals?|dinner|lunch|kitchen|cooking|dining|eats|stuff|scran
cuisine <- kitchen style|style of food
something <- sth|smth|smthg
i am looking for <- lookin for|searching for|im looking for

book it <- (?:can|could|would|will) you (?:please )?(?:book|reserve) (?:it|that|this)(?: one)?
looks <- seems|looks like
that is <- that (?:would|will|should|must) be
works <- (?:should|would|will) work
reservation <- booking
do you have <- do you know
its address <- where (?:it|this|that|the place|the restaurant) is
i like <- (?:i am|i'm|we are) (?:all )?(?:in favou?r of|for)
i like it <- (?:i am|i'm|we are|(?:we|i) would be) happy(?: with (?:that|it|this)| there)?
ok <- no (?:objections?|complaints?|problem)|not bad|(?:i am|i'm|we are) convinced
great <- (?:sounds like a |good |great |nice )(?:plan|idea)|(?:good|nice|fine|great) enough
great <- (?:perfect|excellent|lovely|nice|fine|good|great) (?:choice|pick|option|stuff|for us)
let's do it <- (?:let's|we want to|i want to|we will|i will) (?:go|eat) there
yes <- yep|yup|yea|yah|aye|yess+|yeh|yeap|of course|definitely|absolutely|certainly|indeed|totally
yes <- exactly
yes <- by all means|spot on|agreed|deal|why not|for sure|that is right|affirmative|you bet
yes <- sure thing|oui|yas
perfect <- brilliant|awesome|amazing|fantastic|superb|super|splendid|terrific|marvell?ous|fabulous
perfect <- fab
perfect <- dope|sweet|rad|ace|neat|ideal|delightful|gr8|beautiful|magnificent|outstanding|gorgeous
perfect <- sick|lit
anything else <- (?:anything|something) (?:better|nicer|closer|cooler)
great <- better|much better|tasty|yummy|delicious|nice one|good one|promising
ok <- k|kk|okey|okie|okidoki|okay dokey|alright|aight|fine (?:with|by) (?:me|us)
ok <- ok (?:with|by) (?:me|us)
book it <- confirm(?:ed)?(?: it| that| this| please)?|lock (?:it|that|this) in|sign (?:me|us) up
book it <- secure (?:it|that|this)
book it <- grab (?:it|that|this)|snag (?:it|that|this)|(?:i am|i'm|we are) (?:in|sold)|sold
book it <- make it happen
book it <- count (?:me|us) in|we accept|i accept|let's roll with (?:it|that|this)(?: one)?
book it <- roll with it|hook (?:me|us) up
book it <- (?:yes )?(?:let's |i will |we will |i'd )?go with (?:it|that one|this one|that|this)
book it <- settle (?:on|for) (?:it|that|this)
book it <- (?:i will|we will|i'd|let's) (?:have|choose|pick|try) (?:it|that|this)(?: one)?
take it <- we will take (?:it|that|this)(?: one)?

no <- nah|nay|naw|nope|no way|hell no|not at all|pass|hard pass|negative|nooo*
no i don't like it <- not (?:my|our) (?:thing|cup of tea|style|taste)|not for (?:me|us)
no i don't like it <- (?:i'd|we'd|i would) rather not
no i don't like it <- not (?:keen|convinced|sure|great|good|impressed|a fan|interested|happy)
no i don't like it <- don't fancy (?:it|that|this)
no <- i don't think(?: so)?|rather not
no i don't like it <- (?:i|we|my [a-z]+|they) (?:hates?|dislikes?) (?:it|th[a-z]+)(?: place| one)?
not for me <- too far(?: away)?|closed|awful|terrible|horrible|ugly|disgusting|rubbish|meh|boring
not for me <- lame|yuck|bad
another one <- (?:some )?(?:other|more|different) (?:places?|suggestions?|ones?|options?)
another one <- one more(?: option)?|try again|another (?:option|restaurant|place|choice|suggestion)
another one <- (?:any|some|the|your) others?(?: options?| places?| ones?| choices?)?|other options?
another one <- alternatives?
something else <- (?:something|anything|somewhere|someplace) (?:different|other|new)|somewhere else
something else <- what else
what is its address <- where(?: is|'s|s) (?:it|this|that|the place|the restaurant)(?: located)?
what is its address <- how (?:do|can) (?:i|we) (?:get|go) there|directions
what is its address <- (?:what|which) street(?: is it (?:in|on))?|addy
what is its phone number <- how (?:do|can) (?:i|we) (?:call|reach|contact|ring) (?:them|it)
what is its phone number <- can i (?:call|ring) them
phone number <- phone no|tel|mobile|contact number|phonenumber|digits
"""

SUMS = (
    ("two", "two", "four"),
    ("two", "four", "six"),
    ("four", "two", "six"),
    ("four", "four", "eight"),
    ("six", "two", "eight"),
)
"""Guests that are counted in two parts, as two adults and two children."""
BEFORE_SPLITTING = (
    (f"[{INVISIBLE}]", ""),
    (r"\b([0-9]{1,2}):([0-9]{2})", r"\1.\2"),
    ("[+&]", " and "),
)
"""A time is one word; these signs are words."""
QUANTITIES = (
    r"\b([0-9]+|two|four|six|eight) ?-?(stars?|hours?|minutes?|euros?|dollars?|pounds|days?|weeks?|"
    r"miles|km|pm|am|p\.m|a\.m|o'?clock)\b",
    r"\1\2",
)
"""Numbers that do not count guests become one word with what they count, and so unknown."""
HOURS = (r"\b(at|around|by|before|until|till) (?:about )?([0-9]+|two|four|six|eight)\b", r"\1 \2h")


@functools.cache
def read_other_words():
    """Returns pairs `(known words, patterns of other words)` of `OTHER_WORDS`."""
    pairs = []
    for line in OTHER_WORDS.strip().splitlines():
        if line:
            known_words, _, patterns = line.partition(" <- ")
            known_words = known_words.removeprefix("-")  # a line for words that say nothing
            pairs.append((known_words, _split_alternatives(patterns)))
    return pairs


def _split_alternatives(pattern):
    """Splits a pattern at each `|` outside brackets."""
    parts = [""]
    depth = 0
    for character in pattern:
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def rules_for(known, values):
    """Returns the rules for a bot that books, pairs of a pattern and its replacement.

    Args:
        known: Words that the bot knows.
        values: Values of its slots.
    """
    rules = [QUANTITIES, HOURS]
    for known_words, patterns in read_other_words():
        if not known.issuperset(known_words.split()):
            continue
        used = []
        for pattern in patterns:
            # A word that the bot knows keeps its meaning, but "4" is known as a rating and is read
            # as a number of guests.
            is_number = known_words in values and pattern not in values
            if pattern not in known or is_number:
                used.append(pattern)
        if used:
            rules.append((rf"\b(?:{'|'.join(used)})\b", known_words))
    for first, second, total in SUMS:
        guests = rf"{first}(?: people| of us)? and {second}(?: people| kids?| children| more)?"
        rules.append((rf"\b{guests}\b", total))
    # What a user does not want is no wish.
    any_value = "|".join(re.escape(value) for value in sorted(values))
    rules.append((rf"\b(not|but|except) (?:{any_value})\b", r"\1"))
    return rules


# === Reading ===


class Reader:
    """Reads a user's text as words that the bot knows, where there are such words.

    Args:
        known: Words that the bot knows.
        values: Values of its slots.
        max_words: Most words of a sentence.
        of_users: Words of users whose typing errors are mended, besides the values.
        rules: See `rules_for`.
    """

    def __init__(self, known, values, max_words, of_users=frozenset(), rules=()):
        self.known = known
        self.values = values
        self.max_words = max_words
        self.rules = rules
        self.compiled = [(re.compile(pattern), text) for pattern, text in rules]
        self.limits = {}
        for word in sorted(values | of_users):
            limit = most_typing_errors(word, word in values)
            if limit:
                self.limits[word] = limit
        # A conversation is read again at each turn.
        self.read = functools.lru_cache(maxsize=4096)(self._read)

    def _read(self, text):
        """Returns the words of a text, and values that misspelt words were taken for.

        An empty text is silence.
        """
        text = normalize(text, lower=False)
        text = apply_rules(text, BEFORE_SPLITTING)
        if not text:
            return (SILENCE,), ()
        parts = []
        for word in text.split()[: 2 * self.max_words]:
            parts += self._split(word)
        text = " ".join(parts)
        for pattern, replacement in self.compiled:
            text = pattern.sub(replacement, text)

        words = []
        taken = []
        for word in text.split()[: self.max_words]:
            nearest = word if word in self.known else self.nearest(word)
            words.append(nearest)
            if nearest != word and nearest in self.values:
                taken.append(nearest)
        return tuple(words) or (NO_WORD,), tuple(taken)

    def _split(self, word):
        """Splits a word at signs, unless it is known as it is or without capitals."""
        lower = word.lower()
        for form in (word, lower):
            if form in self.known:
                return [form]
        words = []
        for part in re.sub(BETWEEN, " ", lower).split():
            words.append(part if part in self.known else re.sub(ENDS, "", part))
        return [word for word in words if word]

    def nearest(self, word):
        """Returns the word that a misspelt one is taken for, or itself.

        Only a word with the same first letter is near.
        """
        nearest = word
        least = len(word)
        for form, limit in self.limits.items():
            if form[0] != word[0] or abs(len(form) - len(word)) > limit:
                continue
            errors = count_typing_errors(word, form)
            if errors <= limit and errors < least:
                nearest = form
                least = errors
        return nearest


def most_typing_errors(word, is_value):
    """Returns the most typing errors in a word with which it is still taken for this word."""
    shortest = 4 if is_value else 5
    if len(word) < shortest:
        return 0
    return 1 if len(word) < 7 else 2


def count_typing_errors(word, other):
    """Counts letters that are missing, too many, wrong, or exchanged with their neighbour."""
    row_before = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        two_rows_before = row_before
        row_before = row
        row = [i]
        for j, other_letter in enumerate(other, 1):
            is_wrong = letter != other_letter
            errors = min(row_before[j] + 1, row[j - 1] + 1, row_before[j - 1] + is_wrong)
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == other_letter:
                errors = min(errors, two_rows_before[j - 2] + 1)
            row.append(errors)
    return row[-1]
