"""The words of the simulated conversations (`data.samples.selection`), every line written for this project.

Restaurants, towns, people and telephone numbers are invented. In the templates, `{value}` is the
value of the slot in question; the other braces name a slot or a field of the restaurant.
"""

import re
from typing import NamedTuple


class Scene(NamedTuple):
    """A piece of small talk: what the user says, what the bot replies, how it parts with it.

    The replies answer with related words, seldom with the same ones.
    """

    says: tuple[str, ...]
    replies: tuple[str, ...]
    partings: tuple[str, ...]


class Topic(NamedTuple):
    """Questions that open a topic, and its scenes by name.

    Each scene answers each question. Those of the topics in `kin` could be answers, too.
    """

    questions: tuple[str, ...]
    scenes: dict[str, Scene]
    kin: tuple[str, ...] = ()


def _options(line):
    """Wordings parted by slashes, as a tuple."""
    return tuple(" ".join(line.split()).split(" / "))


def _table(text):
    """Options by key: `key: option / option`; an indented line goes on with the one before."""
    rows = (row.split(": ", 1) for row in re.split(r"\n(?=\S)", text.strip()))
    return {key: _options(line) for key, line in rows}


def _blocks(text):
    """Lines of options by key; an empty line parts the blocks, whose first line is the key."""
    blocks = (block.splitlines() for block in text.strip().split("\n\n"))
    return {key: [_options(line) for line in lines] for key, *lines in blocks}


def _topic(text, kin=()):
    """A topic: a line of questions, then the scenes as blocks."""
    questions, scenes = text.strip().split("\n\n", 1)
    scenes = {name: Scene(*lines) for name, lines in _blocks(scenes).items()}
    return Topic(_options(questions), scenes, kin)


# === The world ===

# what the names of restaurants, addresses and cooks are made of
NAMES = _table("""
adjective: copper / paper / quiet / lazy / salted / crooked / velvet / wandering / blue / hungry
noun: heron / whistle / lantern / fox / anchor / plum / spoon / kettle / magpie / thistle
street: Ladle Lane / Cooper Street / Mill Row / Orchard Walk / Bell Yard / Weaver Street /
    Fern Lane / Gander Hill
chef: Orla / Emil / Runa / Casper / Mabel / Tobin / Ines / Lorcan
surname: Finch / Marsh / Alder / Pike / Sorrel / Vance / Holt / Quill
""")

# slot -> what a user may ask for
VALUES = _table("""
cuisine: seafood / barbecue / noodle / curry / pizza / dumpling / pancake
town: Marlowby / Quillhaven / Ferrow / Brindleford / Pellwick / Hollowmere
price: cheap / modest / fancy
people: two / three / four / six / eight
day: Monday / Tuesday / Wednesday / Thursday / Friday / Saturday / Sunday
time: noon / one o'clock / half past six / seven o'clock / eight o'clock / half past eight
guest: Bram / Tessa / Odile / Ivo / Maren / Linus / Petra / Hugo / Wanda / Felix
""")
DISHES = _table("""
seafood: crab cakes / grilled mackerel / mussels in cider / prawn skewers
barbecue: smoked ribs / burnt ends / pulled pork / brisket rolls
noodle: ginger ramen / cold sesame soba / fried udon / peanut ramen
curry: lentil dal / coconut korma / chickpea masala / lamb vindaloo
pizza: mushroom calzone / four cheese slice / thin crust margherita / deep dish with olives
dumpling: leek pierogi / steamed gyoza / pork wontons / potato pierogi
pancake: buckwheat crepes / banana waffles / blueberry stack / lemon crepes
""")

# === Slots: the bot asks, the user gives, the bot takes note ===

ASKS = _table("""
cuisine: What kind of cooking are you after? / Which cuisine do you fancy? /
    What should be on your plate?
town: Which town should I look in? / In which town would you like to eat? /
    What part of the county suits you?
price: How much would you like to spend? / Are we counting pennies or splashing out? /
    What is your budget?
people: How many of you are coming? / How big a table do you need? /
    How many chairs shall I ask for?
day: Which day suits you? / What day of the week shall I look at? / Which day should I try?
time: At what hour? / What time should they expect you? /
    How early or late would you like to sit down?
guest: What name shall I put down? / Whose name goes in the book? / And you are?
""")
GIVES = _table("""
cuisine: I would like {craving}, please. / We are in the mood for {craving}. /
    I have been dreaming of {craving}.
town: Somewhere in {value}. / We are staying in {value}. / {value} would be handy for us.
price: A {value} place, please. / Somewhere {value}, I think.
people: There will be {value} of us. / A table for {value}, please. / We are a party of {value}.
day: On {value}, please. / {value} would be grand. / We are all free on {value}.
time: At {value}. / We can be there at {value}. / {value} is when we get hungry.
guest: Put it under {value}, please. / My name is {value}. / I am {value}.
""")

# value -> further ways to give it
GIVES_VALUE = _table("""
cheap: We have to watch our money. / Nothing that costs much. / I am broke until my next wages.
modest: Neither a bargain nor a splurge. / In the middle, not too dear. /
    An ordinary bill is fine.
fancy: Money is no object. / We want to dress up for it. / As posh as you can find.
seafood: Anything that comes from the ocean. / Fish or shellfish, please.
two: Just a friend and me. / Only the pair of us.
noon: In the middle of the day.
""")
CRAVINGS = {"noodle": "noodles", "dumpling": "dumplings", "pancake": "pancakes"}
NOTES = _table("""
cuisine: {value}, good choice. / A {value} kitchen, with pleasure. / Mmm, {craving}.
town: {value}, I know it well. / I will look around {value}. / {value} has some nice tables.
price: A {value} place, right. / I will keep it {value}.
people: A table for {value}, noted. / {value} chairs, then. / {value} of you, understood.
day: {value}, noted. / {value} is still free. / I will see what {value} has left.
time: {value}, noted. / {value} should work. / I will try for {value}.
guest: Thank you, {value}. / Nice to meet you, {value}. / A warm welcome, {value}.
name: The {value} it is. / The {value}, excellent. / You will like the {value}.
""")

# value -> ways to take note of it in other words
NOTES_VALUE = _table("""
cheap: Easy on the purse, understood. / A small bill, then.
modest: Fair prices, then. / Something in between, understood.
fancy: White tablecloths and silver forks, then. / The best that wallets can buy, understood.
seafood: Fresh from the nets, then. / Bring me the catch of the day!
barbecue: Smoke and embers, I can see the flames. / Ribs and a napkin round the neck, then.
noodle: A steaming bowl to slurp from, then. / Ramen or udon, then.
curry: Plenty of spice and rice, then. / Turmeric and cumin, then.
pizza: Straight from a stone oven, then. / Crust and melted mozzarella, then.
dumpling: Little steamed parcels, then. / Gyoza or pierogi, then.
pancake: Hot off the griddle with syrup, then. / Crepes or waffles, then.
two: A pair, how cosy.
three: A trio, understood.
four: A quartet, understood.
six: Half a dozen, understood.
Monday: A good start to the week.
Wednesday: Halfway through the week, fine.
Friday: Just as the weekend begins, fine.
Sunday: A slow end to the weekend, fine.
noon: A midday meal, then.
half past six: Thirty minutes before seven, then.
half past eight: Thirty minutes before nine, then.
""")
NODS = ("Right.", "Got it.", "Very well.", "Good to know.", "Understood.")
CORRECTIONS = _table("""
cuisine: Actually, make it {craving}. / Wait, I would rather have {craving}.
town: Actually, make it {value}. / Sorry, not {old}, I meant {value}.
price: Actually, make it a {value} one. / On second thoughts, not {old} but {value}.
people: Actually, we will be {value}. / Sorry, {value} of us, not {old}.
day: Actually, make it {value}. / Sorry, not {old}, I meant {value}.
time: Actually, could we say {value}? / Oh dear, {old} does not work, {value} does.
""")
CORRECTION_NODS = (
    "No trouble.",
    "Of course.",
    "Easily changed.",
    "I crossed out {old}.",
    "Not {old}, fine.",
)
RECALL_QUESTIONS = _table("""
cuisine: What food did I ask for again? / Remind me, what are we going to eat?
town: Which town did I say? / Remind me, where are we going?
price: How much did I want to spend again? / Remind me, what budget did I give you?
people: How many did I say we are? / Remind me, how many seats did we ask for?
day: Which day did I tell you? / Remind me, what day was it?
time: When was it that I wanted to sit down? / Remind me, what hour did I say?
""")
RECALL_ANSWERS = _table("""
cuisine: You asked for {craving}. / It was to be a {value} kitchen.
town: You told me {value}. / It was {value} that you wanted.
price: You wanted it {value}. / A {value} place was your wish.
people: You told me {value} people. / You asked for {value} seats.
day: You told me {value}. / It was to be a {value}.
time: You told me {value}. / You wanted to be there at {value}.
""")

# === Openings ===

BOT_OPENINGS = (
    "Welcome to Colloquy, how can I help?",
    "Good evening, this is the table desk.",
    "Hello, shall we find you something good to eat?",
)
GREETINGS = ("Hi!", "Hello.", "Good evening.", "Good morning.", "")
INTRODUCTIONS = ("{guest} here.", "I am {guest}.", "My name is {guest}.")
WANT = {  # how a slot told in the opening reads within the sentence
    "price": " {value}",
    "cuisine": " {value}",
    "town": " in {value}",
    "people": " for {value}",
    "day": " on {value}",
    "time": " at {value}",
}
SEARCH_OPENINGS = (
    "I am looking for {wanted}.",
    "Could you find me {wanted}?",
    "We would like to go to {wanted}.",
    "Is there {wanted}?",
)
NAMED_OPENINGS = (
    "I want a table at the {name}{when}.",
    "Can you get us into the {name}{when}?",
    "We would like to try the {name}{when}.",
)
CHAT_OPENINGS = (
    "I have a moment to spare.",
    "I am just here to chat.",
    "I am bored today.",
    "Talk to me for a while.",
)
BOT_GREETINGS = ("Happy to help.", "Gladly.", "With pleasure.", "Let us see.")
BOT_CHAT_GREETINGS = (
    "Lovely to hear from you.",
    "I am all ears.",
    "I always have time for a chat.",
)

# === Offers, questions about a restaurant, the booking, the farewell ===

PRICE_HINTS = {
    "cheap": "the bill will be small",
    "modest": "the prices are fair",
    "fancy": "they lay white tablecloths",
}
OFFERS = (
    ("The {name} is a {price} {cuisine} place in {town}.", ("cuisine", "town", "price")),
    (
        "How about the {name}? It is {price}, and they serve {craving} in {town}.",
        ("cuisine", "town", "price"),
    ),
    ("Go to the {name} in {town}: ask for the {dish}, and {hint}.", ("cuisine", "town", "price")),
    ("I like the {name} in {town}, above all for the {dish}.", ("cuisine", "town")),
    ("The {name} is famous for its {dish}, and {hint}.", ("cuisine", "price")),
)
PAIR_OFFERS = (
    (
        "In {town} there are the {name} and the {other}, both with {price} {craving}.",
        ("cuisine", "town", "price"),
    ),
    (
        "The {name} does {dish}, the {other} does {other_dish}, and both are in {town}.",
        ("cuisine", "town"),
    ),
    (
        "I have two: the {name} and the {other}, {price} {cuisine} places in {town}.",
        ("cuisine", "town", "price"),
    ),
)
PAIR_PROMPTS = ("Which one sounds better?", "Which of them shall it be?")
PICKS = ("The {name}, please.", "I like the sound of the {name}.", "Let us go to the {name}.")
ORDINAL_PICKS = (
    ("The first one, please.", "The former sounds better."),
    ("The second, please.", "I prefer the latter."),
)
ACCEPT_PROMPTS = ("Shall I book it?", "Would you like a table there?")
ACCEPTS = ("Yes, please book it.", "That sounds perfect, go ahead.", "Yes, let us go there.")
BOOKINGS = (
    ("All done: the {name}, {day} at {time}, {people} of you.", ("name", "day", "time", "people")),
    (
        "I booked {people} seats under {guest} for {day} at {time}.",
        ("people", "guest", "day", "time"),
    ),
    (
        "{guest}, your table for {people} at the {name} is ready on {day}.",
        ("guest", "people", "name", "day"),
    ),
    ("The {name} expects {guest} on {day} at {time}.", ("name", "guest", "day", "time")),
)
DETAIL_QUESTIONS = _table("""
phone: What is the phone number of {place}? / How can I ring {place}?
address: Where exactly is {place}? / How do I find {place}?
chef: Who does the cooking at {place}? / Who is in charge of the stove at {place}?
rating: Is {place} any good? / What do people think of {place}?
since: How long has {place} been around? / Is {place} a new restaurant?
dish: What should I order at {place}? / What is the best thing on the menu at {place}?
price: Will {place} ruin me? / Is {place} hard on the wallet?
""")
DETAIL_ANSWERS = _table("""
phone: You can call the {name} on {phone}. / The {name} answers at {phone}.
address: The {name} stands at {address}. / Look for {address}, that is the {name}.
chef: {chef} runs the kitchen of the {name}. / At the {name} you taste the work of {chef}.
rating: Guests give the {name} {rating} out of ten. / The {name} scores {rating} out of ten.
since: The {name} opened its doors in {since}. / They founded the {name} in {since}.
dish: At the {name}, try the {dish}. / The {dish} made the {name} famous.
price: As for the {name}, {hint}.
""")

# without the name: the cuisine and the price said earlier decide
PLAIN_DETAIL_ANSWERS = _table("""
dish: Try the {dish}. / People travel far for the {dish}. / I hear that guests dream of the {dish}.
price: I am told that {hint}. / Let me say only that {hint}.
""")
THANKS = (
    "Thanks, that is all.",
    "Great, goodbye.",
    "You have been a great help, bye.",
    "That will do, thank you.",
)
PARTINGS = (
    ("Enjoy your meal at the {name}.", ("name",)),
    ("Have a nice {day}, {guest}.", ("day", "guest")),
    ("Until {day}, then.", ("day",)),
    ("Goodbye, {guest}.", ("guest",)),
    ("Have a good trip to {town}.", ("town",)),
    ("You are welcome, goodbye.", ()),
)

# === Small talk ===

TOPICS = {
    "weather": _topic(
        """
How is the weather out there? / What does it look like outside? / Is it nice out today?

rain
It has been pouring since breakfast. / Nothing but drizzle and puddles. / My socks are soaked.
Keep an umbrella by the door. / The ducks will be pleased. / Rubber boots would help.
Stay dry! / And take your umbrella along.

snow
It has been snowing since midnight. / Ice on every window. / The yard is under a white blanket.
Wrap up in your thickest coat. / Mittens and hot cocoa, then. / Mind the slippery pavement.
Keep warm out there! / And mind the slippery pavement.

heat
It is far too hot to move. / The sun is melting the road. / Not a cloud, and I am sweating.
Sit in the shade for a while. / A fan and a cold lemonade, then. / Put on plenty of lotion.
Stay in the shade! / And drink plenty of lemonade.

wind
A gale blew my hat away. / The trees bend in the storm. / It is too gusty for my bicycle.
Hold on to your scarf. / Let us hope that the chimney stays up. / At least your kite would fly.
Hold on to your scarf! / May no chimney fall on you.
""",
    ),
    "hobby": _topic(
        """
What do you do for fun? / How do you spend your free hours? / Do you have a hobby?

chess
I play chess at the club. / I keep losing my queen to my uncle. / I study knights and bishops.
May your king stay safe. / Checkmate comes with patience. / Sixty-four squares, endless trouble.
May your king stay safe. / Good luck with your next checkmate.

garden
I grow tomatoes behind the house. / I dig in the mud with a spade. / My roses are in bloom.
Green fingers are a gift. / The slugs must fear you. / Remember to water them before you leave.
May the slugs leave you alone. / And remember to water everything.

music
I practise the guitar every night. / We have a band in a garage. / I sing in a choir.
Your neighbours must have patient ears. / I know only one tune. / Save me a seat at the concert.
Save me a seat at the concert. / May your neighbours love the tune.

reading
I read novels in the bath. / I stayed up for the last chapter. / I live in the library.
Please do not spoil the ending. / A page a day is never enough. / I hope your bookmark holds.
Enjoy the next page. / And do not spoil the ending.

running
I run along the river. / I am training for a marathon. / My knees ache from ten miles.
Lace your shoes tight. / Stretch well before each lap. / You will cross the finish line first.
See you at the finish line. / And stretch before each lap.
""",
        kin=("travel", "pets", "treat"),
    ),
    "travel": _topic(
        """
Have you been anywhere nice? / Where did your last journey take you? / Any trips this year?

mountains
We climbed to a hut above the valley. / I hiked along a ridge for days. / I put a tent on a hill.
The view from the summit must be grand. / You must have seen eagles. / Thin air makes you hungry.
May your next summit be clear. / Greet the eagles from me.

beach
I lay on the sand for a week. / We swam in the waves. / I came back with a bag of shells.
I can almost smell the salt. / The gulls stole your sandwich, I bet. / A towel and a tan, bliss.
Mind the gulls next time. / May your tan last.

train
I slept in a railway carriage. / We saw fields from the dining car. / I changed trains at midnight.
I love the rattle of the tracks. / A window seat beats a plane. / Conductors have the best stories.
Greet the conductor from me. / May you always get a window seat.
""",
    ),
    "treat": _topic(
        """
What treat can you never resist? / What is your guilty pleasure? / What makes your mouth water?

chocolate
I would do anything for chocolate. / I hide truffles in my desk. / Brownies, warm from the tin.
Save one square for me. / A cocoa bean never hurt anyone. / Wrapped in gold foil, I suppose.
Hide the gold foil well. / And save one square for me.

cheese
A ripe brie on crackers. / I could live on cheddar. / I have a gouda in every drawer.
The mice must envy you. / A grape on the side, perhaps. / The more it stinks, the better.
Keep the mice away. / May your fridge not stink.

coffee
I need espresso to wake up. / I grind my own beans. / My mug is never empty.
You will lie awake tonight. / With milk foam, it is perfect. / Your barista must be rich.
I hope that you sleep in spite of the caffeine. / Greet your barista.

chilli
I put hot sauce on everything. / The redder the chilli, the better. / Peppers that make me cry.
Your tongue must be leather. / Let us warn the fire brigade. / Keep a bucket of water nearby.
I will tell the fire brigade. / Spare your poor tongue.

icecream
I eat ice cream even in winter. / Pistachio, scoop upon scoop. / A cone of sorbet on the pier.
Lick fast before it drips. / Sprinkles on top, I hope. / It gives me a frozen brain.
Lick fast before it drips. / I wish you sprinkles on top.
""",
    ),
    "occasion": _topic(
        """
Is there something to celebrate? / What is the occasion? / Is it a special evening?

birthday
My sister is turning thirty. / I am a year older today. / It is the birthday of my father.
I will ask for candles on a cake. / Make a wish and blow, then. / Balloons for everyone, then.
Many happy returns! / And do make a wish.

anniversary
We married ten years ago. / It is our wedding day again. / I want to surprise my husband.
A rose on the table, then. / How romantic of you. / True love deserves a quiet corner.
Long may your love last. / I will see to the rose.

exam
My son passed his finals. / I finished my degree at last. / Our daughter got her diploma.
All that studying paid off. / Hats in the air for the graduate! / The textbooks can gather dust.
My regards to the graduate. / No more studying tonight.

job
I got promoted this morning. / I signed with a new company. / I start at another office.
Your boss chose wisely. / A raise deserves a toast. / May the meetings be short.
May your meetings be short. / My regards to your boss.
""",
    ),
    "pets": _topic(
        """
Do you have any pets? / Is there an animal in your house? / Who waits for you at home?

cat
My cat sleeps on the keyboard. / A tabby who ignores me. / The kitten climbs the curtains.
I can hear the purring from here. / Nine lives and no respect. / Her claws ruin the furniture.
May you come home to purring. / And mind those claws.

dog
Our puppy ate a slipper. / A terrier who barks at the postman. / I walk my spaniel at dawn.
A stick would make that tail wag. / He must wait with his leash. / Give him a bone from me.
Throw a stick for him from me. / And do not forget the leash.

parrot
My parrot repeats all my secrets. / A budgie that whistles. / The canary sings in its cage.
Feathers everywhere, I imagine. / Cover the perch for some peace. / I hope it has seeds to nibble.
Give it some seeds from me. / I hope that it is asleep on its perch.

fish
A goldfish called Admiral. / I keep a tank with snails. / Only a shy carp in the pond.
It never complains, it only bubbles. / Fins are so calming to watch. / Keep the water clean.
May the water stay clean. / Blow it some bubbles.
""",
    ),
}

# what users ask the bot about itself, and what it says
PERSONA = _blocks("""
robot
Are you a person? / Am I talking to a machine? / Are you made of flesh and blood?
Only a program, but a polite one. / I am all numbers and no muscle. / No heart beats in here.

sleep
Do you ever sleep? / Are you not tired? / Do you never go to bed?
I doze while you type. / Pillows are wasted on me. / I am awake all night long.

eat
What do you eat? / Are you hungry yourself? / Have you had lunch?
A little electricity is all that I swallow. / I have no stomach to fill. / I feed on sentences.

age
How old are you? / When were you born? / Are you young?
Younger than your shoes, I guess. / I never blew out a candle. / Count my versions, not my years.

home
Where do you live? / Where are you sitting? / What does your place look like?
In a humming box under a desk. / My address is a socket in the wall. / Among cables, somewhere dark.

maker
Who made you? / Who taught you to talk? / Do you have parents?
A few patient engineers did. / Many examples were my school. / Somebody with too much tea wrote me.

joke
Tell me a joke. / Can you make me laugh? / Do you know anything funny?
Two carrots walk into a bar, ouch. / An egg blushed at the salad dressing. / I only know puns.
""")
