// All texts of the console: English and German side by side. `{count}` is a value,
// `{count|reader|readers}` a word by its number. README.md of this folder says how they sound.
export const texts = {
  // The frame.
  console: ["Console", "Konsole"],
  skip: ["Skip to the content", "Zum Inhalt"],
  mainMenu: ["Main", "Hauptmenü"],
  notifications: ["Notifications", "Meldungen"],
  tryIt: ["Try it", "Ausprobieren"],
  newNotification: ["New notification", "Neue Meldung"],
  newOne: ["New", "Neue"],
  languageLabel: ["Language", "Sprache"],
  loggedInAs: ["Logged in as", "Angemeldet als"],
  operator: ["Operator", "Betrieb"],
  logOut: ["Log out", "Abmelden"],
  oneMoment: ["One moment …", "Einen Moment …"],
  tryAgain: ["Try again", "Erneut versuchen"],
  dismiss: ["Dismiss", "Ausblenden"],
  close: ["Close", "Schließen"],
  cancel: ["Cancel", "Abbrechen"],
  showMore: ["Show more", "Mehr anzeigen"],
  details: ["Details", "Einzelheiten"],
  counted: ["{count} of {most}", "{count} von {most}"],
  notFoundTitle: ["There is nothing at this address", "Unter dieser Adresse ist nichts"],
  notFoundText: [
    "The link may be old, or belong to somebody whose notifications you may not see.",
    "Der Link ist vielleicht alt, oder du darfst diese Meldung nicht sehen."
  ],
  toNotifications: ["To the notifications", "Zu den Meldungen"],

  // Times.
  todayAt: ["{time}", "{time}"],
  tomorrowAt: ["tomorrow at {time}", "morgen um {time}"],
  yesterdayAt: ["yesterday at {time}", "gestern um {time}"],
  dateAt: ["{date}, {time}", "{date}, {time}"],
  daysHours: ["{days} {days|day|days} {hours} h", "{days} {days|Tag|Tage} {hours} Std."],
  hoursMinutes: ["{hours} h {minutes} min", "{hours} Std. {minutes} Min."],
  minutes: ["{minutes} min", "{minutes} Min."],
  minutesSeconds: ["{minutes} min {seconds} s", "{minutes} Min. {seconds} s"],
  seconds: ["{seconds} s", "{seconds} s"],

  // Login.
  loginTitle: ["Log in", "Anmelden"],
  loginLead: [
    "Write notifications, send them, and see what became of them.",
    "Push-Meldungen schreiben, senden und sehen, was aus ihnen wird."
  ],
  loginStarting: ["Looking who you are …", "Anmeldung wird geprüft …"],
  loginOpenid: ["Log in with {name}", "Mit {name} anmelden"],
  loginPortier: ["Log in by mail", "Per E-Mail anmelden"],
  mailAddress: ["Your mail address", "Deine E-Mail-Adresse"],
  loginProxy: [
    "Go on with the login of your organisation",
    "Mit der Anmeldung deiner Organisation weiter"
  ],
  loginProxyNobody: [
    "Your organisation’s login did not say who you are. Log in there, then try again.",
    "Die Anmeldung deiner Organisation nennt dich nicht. Melde dich dort an, dann versuche es erneut."
  ],
  loginSigned: [
    "On this service you come in by a link on your site. Open the site, and follow it from there.",
    "Zu diesem Dienst führt ein Link auf eurer Website. Öffne die Website und folge ihm von dort."
  ],
  loginDevelopment: ["Development", "Entwicklung"],
  loginDevelopmentHint: [
    "This service runs for development: any name is a user, with any password.",
    "Dieser Dienst läuft zur Entwicklung: Jeder Name ist ein Nutzer, mit beliebigem Passwort."
  ],
  userName: ["Name", "Name"],
  password: ["Password", "Passwort"],
  loginToken: ["With a token", "Mit einem Token"],
  loginTokenHint: [
    "It stays in the memory of this page: a reload, or another page in this tab, asks for it again.",
    "Es bleibt im Speicher dieser Seite: Nach dem Neuladen oder einer anderen Seite in diesem Tab wird wieder gefragt."
  ],
  token: ["Token", "Token"],
  logIn: ["Log in", "Anmelden"],
  loginUnknown: [
    "The service does not know this login. Check it, and try again.",
    "Der Dienst kennt diese Anmeldung nicht. Prüfe sie und versuche es erneut."
  ],
  loginRefused: ["The login did not succeed: {reason}", "Die Anmeldung gelang nicht: {reason}"],
  loginEndedTitle: ["Your login has ended", "Deine Anmeldung ist abgelaufen"],
  loginEndedText: [
    "Log in again. The page behind this question stays as it is.",
    "Melde dich erneut an. Die Seite dahinter bleibt, wie sie ist."
  ],
  otherLoginTitle: ["Become somebody else?", "Jemand anderes werden?"],
  otherLoginNow: ["You are now {other}", "Du bist jetzt {other}"],
  otherLoginLink: [
    "A link wants to log you in as {other}. You are logged in as {name}.",
    "Ein Link will dich als {other} anmelden. Du bist als {name} angemeldet."
  ],
  otherLoginAgain: [
    "You logged in as {other}. This page was opened by {name}.",
    "Du hast dich als {other} angemeldet. Geöffnet hat diese Seite {name}."
  ],
  otherLoginProxy: [
    "Your organisation’s login says that you are {other}. This page was opened by {name}, and nothing was done since in the name of {other}. To go on as {name}, log in there as {name} in another tab, then come back.",
    "Die Anmeldung deiner Organisation sagt, du bist {other}. Geöffnet hat diese Seite {name}, und im Namen von {other} wurde seitdem nichts getan. Um als {name} weiterzumachen, melde dich dort in einem anderen Tab als {name} an und komm zurück."
  ],
  otherLoginKeeps: [
    "What {name} wrote and is not saved yet stays in this tab, for {name} alone.",
    "Was {name} geschrieben hat und noch nicht gespeichert ist, bleibt in diesem Tab, nur für {name}."
  ],
  otherLoginGoOn: ["Go on as {other}", "Als {other} weiter"],
  otherLoginBack: ["I am {name} again", "Ich bin wieder {name}"],
  nowYou: ["You are now {name}.", "Du bist jetzt {name}."],
  nowYouText: ["Before, this was the page of {name}.", "Vorher war dies die Seite von {name}."],
  loggedOutHere: [
    "You are logged out here. Your organisation’s login goes on: on a computer that others use, log out there, too.",
    "Du bist hier abgemeldet. Die Anmeldung deiner Organisation besteht weiter: Melde dich auf einem gemeinsamen Rechner auch dort ab."
  ],
  otherLoginStay: ["Stay {name}", "{name} bleiben"],
  otherLoginChange: ["Become {other}", "Zu {other} wechseln"],

  // Compose.
  compose: ["Write", "Schreiben"],
  add: ["Add", "Hinzufügen"],
  remove: ["Remove", "Entfernen"],
  draftMissing: ["This draft is gone", "Diesen Entwurf gibt es nicht mehr"],
  draftEmpty: ["Nothing written yet", "Noch nichts geschrieben"],
  draftTyping: ["Not saved yet", "Noch nicht gespeichert"],
  draftStoring: ["Saving …", "Wird gespeichert …"],
  draftStored: ["Saved at {time}", "Gespeichert um {time}"],
  draftChanged: ["Saved at {time}, changed since", "Gespeichert um {time}, seither geändert"],
  draftNotStored: [
    "Not saved. What you typed is still here",
    "Nicht gespeichert. Dein Text ist noch hier"
  ],
  theirs: [
    "This draft was changed by {name} at {time}.",
    "Dieser Entwurf wurde um {time} von {name} geändert."
  ],
  theirsTodo: [
    "Nothing is saved until you choose one of the two.",
    "Gespeichert wird erst wieder, wenn du eine der beiden Fassungen wählst."
  ],
  theirsMine: ["Yours", "Deine"],
  theirsTheirs: ["Theirs", "Die andere"],
  theirsTake: ["Take theirs, drop mine", "Die andere nehmen, meine verwerfen"],
  theirsReplace: ["Keep mine, replace theirs", "Meine behalten, die andere ersetzen"],
  theirsTaken: [
    "This draft was changed by {name} at {time}. You see the new form.",
    "Dieser Entwurf wurde um {time} von {name} geändert. Du siehst die neue Fassung."
  ],
  gone: [
    "Somebody sent or deleted this draft meanwhile.",
    "Jemand hat diesen Entwurf inzwischen gesendet oder gelöscht."
  ],
  goneTodo: [
    "What you see is your copy. It is saved once you go on with it as a new draft.",
    "Was du siehst, ist deine Kopie. Gespeichert wird sie erst als neuer Entwurf."
  ],
  goneKeep: ["Go on as a new draft", "Als neuen Entwurf weiterführen"],
  goneDrop: ["Drop my copy", "Meine Kopie verwerfen"],
  unsaved: ["“{title}” is not saved.", "„{title}“ ist nicht gespeichert."],
  unsavedTodo: [
    "What you typed is in this tab only. Open the draft to see why.",
    "Dein Text ist nur in diesem Tab. Öffne den Entwurf, um zu sehen, warum."
  ],
  unsavedOpen: ["Open the draft", "Entwurf öffnen"],
  changePart: ["Part", "Teil"],
  changeBefore: ["Before", "Vorher"],
  changeNow: ["Now", "Jetzt"],
  changeNothing: ["(nothing)", "(nichts)"],
  "part-title": ["Title", "Titel"],
  "part-body": ["Text", "Text"],
  "part-navigate": ["Link", "Link"],
  "part-image": ["Image", "Bild"],
  "part-icon": ["Icon", "Symbol"],
  "part-actions": ["Buttons", "Knöpfe"],
  "part-tag": ["Story", "Geschichte"],
  "part-lang": ["Language", "Sprache"],
  "part-name": ["Name for the desk", "Name für die Redaktion"],
  "part-to": ["To whom", "An wen"],
  "part-at": ["Time", "Zeit"],
  "part-rate": ["Speed", "Tempo"],
  "part-pause_when": ["Pause by itself", "Hält selbst an"],
  "part-ttl": ["Kept for", "Aufbewahrt für"],
  "part-urgency": ["Urgency", "Dringlichkeit"],
  message: ["Message", "Meldung"],
  foreign: [
    "A program wrote this draft in a form of its own. The first change here makes it a notification that every browser shows.",
    "Ein Programm hat diesen Entwurf in eigener Form geschrieben. Die erste Änderung hier macht daraus eine Meldung, die jeder Browser zeigt."
  ],
  titleMissing: [
    "Without a title nothing can be sent. Write one.",
    "Ohne Titel wird nichts gesendet. Schreibe einen."
  ],
  link: ["Link", "Link"],
  linkHint: ["The page that a press opens.", "Die Seite, die ein Druck öffnet."],
  linkTry: ["Open it in a new window", "In neuem Fenster öffnen"],
  "address-missing": [
    "Where does a press lead? Write the whole address of a page.",
    "Wohin führt ein Druck? Schreibe die ganze Adresse einer Seite."
  ],
  "address-relative": [
    "This is only a part of an address. Begin with https:// and the name of the site.",
    "Das ist nur ein Teil einer Adresse. Beginne mit https:// und dem Namen der Website."
  ],
  "address-scheme": [
    "Browsers take web addresses only. Use one that begins with https://.",
    "Browser nehmen nur Webadressen. Nimm eine, die mit https:// beginnt."
  ],
  "address-http": [
    "Safari drops notifications with http. Use https://.",
    "Safari verwirft Meldungen mit http. Nimm https://."
  ],
  image: ["Image", "Bild"],
  imageHint: ["Best twice as wide as high.", "Am besten doppelt so breit wie hoch."],
  icon: ["Icon", "Symbol"],
  iconHint: ["Small and square, beside the title.", "Klein und quadratisch, neben dem Titel."],
  buttonAdd: ["Add a button", "Knopf hinzufügen"],
  buttonLegend: ["Button {number}", "Knopf {number}"],
  buttonTitle: ["Label", "Beschriftung"],
  buttonNoTitle: ["Write what the button does.", "Schreibe, was der Knopf tut."],
  buttonLink: ["Its link", "Sein Link"],
  buttonSameLink: ["Same as above", "Wie oben"],
  buttonRemove: ["Remove button {number}", "Knopf {number} entfernen"],
  locales: ["Language of the message", "Sprache der Meldung"],
  localeOthers: ["All others", "Alle anderen"],
  localeAdd: ["Add a language", "Sprache hinzufügen"],
  localeHint: [
    "A browser in this language gets this text, all others get the first one.",
    "Browser in dieser Sprache bekommen diesen Text, alle anderen den ersten."
  ],
  localeWrong: [
    "This is no language. Use its code, such as de or pt-BR.",
    "Das ist keine Sprache. Nimm ihren Code, etwa de oder pt-BR."
  ],
  localeThere: ["This language is there already.", "Diese Sprache gibt es schon."],
  localeRemove: ["Remove {language}", "{language} entfernen"],
  handling: [
    "More: story, how long it is kept, urgency",
    "Mehr: Geschichte, Aufbewahrung, Dringlichkeit"
  ],
  tag: ["Story", "Geschichte"],
  tagHint: [
    "A later notification with the same word here replaces this one where it is still shown.",
    "Eine spätere Meldung mit demselben Wort ersetzt diese, wo sie noch zu sehen ist."
  ],
  ttl: ["Kept for browsers that are off", "Aufbewahrt für Browser, die aus sind"],
  "ttl-3600": ["1 hour", "1 Stunde"],
  "ttl-21600": ["6 hours", "6 Stunden"],
  "ttl-86400": ["1 day", "1 Tag"],
  "ttl-259200": ["3 days", "3 Tage"],
  "ttl-604800": ["1 week", "1 Woche"],
  "ttl-2419200": ["4 weeks", "4 Wochen"],
  urgency: ["Urgency", "Dringlichkeit"],
  "urgency-high": ["High", "Hoch"],
  "urgency-normal": ["Normal", "Normal"],
  "urgency-low": ["Low", "Niedrig"],
  "urgency-very-low": ["Very low", "Sehr niedrig"],
  "urgencyHint-high": [
    "Wakes phones with little battery, too.",
    "Weckt auch Handys mit wenig Akku."
  ],
  "urgencyHint-normal": ["Wakes phones.", "Weckt Handys."],
  "urgencyHint-low": ["May wait for Wi-Fi or power.", "Darf auf WLAN oder Strom warten."],
  "urgencyHint-very-low": ["May wait for Wi-Fi and power.", "Darf auf WLAN und Strom warten."],
  nameForDesk: ["Name for the desk", "Name für die Redaktion"],
  nameForDeskHint: ["Only for your lists; never sent.", "Nur für eure Listen; wird nie gesendet."],
  bytesLabel: ["Size of the notification", "Größe der Meldung"],
  bytes: ["{bytes} of {most} bytes", "{bytes} von {most} Bytes"],
  bytesOver: ["Too large: shorten it.", "Zu groß: Kürze sie."],
  bytesMuch: [
    "Above {most}, Firefox on Android may not get it.",
    "Über {most} bekommt Firefox auf Android sie vielleicht nicht."
  ],

  // Preview.
  preview: ["Preview", "Vorschau"],
  previewAndTest: ["Preview and test", "Vorschau und Test"],
  previewPlatform: ["Preview as shown by", "Vorschau wie auf"],
  previewGround: ["Preview in", "Vorschau in"],
  previewLight: ["Light", "Hell"],
  previewDark: ["Dark", "Dunkel"],
  previewSite: ["your site", "eure Website"],
  previewNow: ["now", "jetzt"],
  previewNoTitle: ["Title", "Titel"],
  previewBroken: ["This image cannot be shown.", "Dieses Bild lässt sich nicht zeigen."],
  previewAll: ["Shows all that you wrote.", "Zeigt alles, was du geschrieben hast."],
  previewLeftOut: ["Leaves out: {what}.", "Lässt weg: {what}."],
  "platform-windows": ["Windows", "Windows"],
  "platform-macos": ["macOS", "macOS"],
  "platform-android": ["Android", "Android"],
  "platform-iphone": ["iPhone", "iPhone"],
  "platform-firefox": ["Firefox", "Firefox"],
  "leftOut-image": ["the image", "das Bild"],
  "leftOut-icon": [
    "your icon (it shows the one of your site)",
    "dein Symbol (es zeigt das eurer Website)"
  ],
  "leftOut-buttons": ["the buttons", "die Knöpfe"],
  "leftOut-titleEnd": ["the end of the title", "das Ende des Titels"],
  "leftOut-bodyEnd": ["the end of the text", "das Ende des Textes"],
  "about-windows": [
    "About as in Edge and Chrome. Where a text is cut depends on its letters.",
    "Ungefähr wie in Edge und Chrome. Wo ein Text endet, hängt von seinen Buchstaben ab."
  ],
  "about-macos": [
    "About as in Safari, opened. Chrome on macOS shows the icon and the buttons, too.",
    "Ungefähr wie in Safari, aufgeklappt. Chrome auf macOS zeigt auch Symbol und Knöpfe."
  ],
  "about-android": [
    "About as in Chrome, opened. Closed, it shows one line of the text.",
    "Ungefähr wie in Chrome, aufgeklappt. Zugeklappt ist eine Zeile Text zu sehen."
  ],
  "about-iphone": [
    "About as from a site on the home screen. Other sites get none on an iPhone.",
    "Ungefähr wie von einer Website auf dem Home-Bildschirm. Andere zeigen auf dem iPhone keine."
  ],
  "about-firefox": [
    "About as in Firefox on a computer. On Android it shows less of the text.",
    "Ungefähr wie in Firefox am Computer. Auf Android zeigt er weniger Text."
  ],

  // To whom.
  audience: ["To whom", "An wen"],
  audienceMissing: [
    "Nobody would get it. Add a channel.",
    "Niemand bekäme sie. Füge einen Kanal hinzu."
  ],
  channels: ["Channels", "Kanäle"],
  channelsPlaceholder: ["Name, or how it begins", "Name oder Anfang"],
  channelsChosen: ["Chosen channels", "Gewählte Kanäle"],
  channelsSuggested: ["Channels to add", "Kanäle zum Hinzufügen"],
  channelsNone: [
    "No channel of yours begins with “{prefix}”.",
    "Keiner deiner Kanäle beginnt mit „{prefix}“."
  ],
  channelsUnlisted: [
    "The list of channels cannot be read now. You can type a name.",
    "Die Liste der Kanäle lässt sich gerade nicht lesen. Du kannst einen Namen eintippen."
  ],
  channelsMost: [
    "{most} channels are the most. Remove one to add another.",
    "Mehr als {most} Kanäle gehen nicht. Entferne einen, um einen anderen hinzuzufügen."
  ],
  channelAdd: ["Add {name}", "{name} hinzufügen"],
  channelRemove: ["Remove {name}", "{name} entfernen"],
  channelUnknown: ["nobody has joined it", "niemand ist ihm beigetreten"],
  channelRefused: ["you may not send to it", "du darfst nicht an ihn senden"],
  channelNotCounted: ["not counted", "nicht gezählt"],
  readers: ["{count} {count|reader|readers}", "{count} {count|Leser|Leser}"],
  users: ["Single users, and exceptions", "Einzelne Nutzer und Ausnahmen"],
  usersNamed: ["Users", "Nutzer"],
  usersHint: [
    "One id a line, such as openid:ann. Mail addresses become codes.",
    "Eine ID je Zeile, etwa openid:ann. Mailadressen werden zu Codes."
  ],
  usersBack: [
    "A line with “pseudonym:” is a reader whom an earlier notification named: the service keeps no names.",
    "Eine Zeile mit „pseudonym:“ ist ein Leser, den eine frühere Meldung nannte: Der Dienst behält keine Namen."
  ],
  usersExcept: ["But not", "Aber nicht"],
  usersExceptHint: [
    "These users get nothing, whatever else names them.",
    "Diese Nutzer bekommen nichts, was immer sie sonst nennt."
  ],
  usersSaved: ["Saved once you leave the field.", "Gespeichert, sobald du das Feld verlässt."],
  usersWrongLine: ["line {line}", "Zeile {line}"],
  usersWrong: [
    "Not an id: {lines}. Write the policy, a colon, and the name.",
    "Keine ID: {lines}. Schreibe die Art der Anmeldung, einen Doppelpunkt und den Namen."
  ],
  usersMost: ["{most} users are the most.", "Mehr als {most} Nutzer gehen nicht."],
  usersRefused: [
    "You may not name users. Remove them, or ask whoever runs the service.",
    "Du darfst keine Nutzer nennen. Entferne sie, oder frage den Betrieb."
  ],
  reach: [
    "{people} {people|reader|readers} on {browsers} {browsers|browser|browsers}",
    "{people} Leser mit {browsers} {browsers|Browser|Browsern}"
  ],
  reachAbout: [
    "About {people} readers on {browsers} browsers",
    "Etwa {people} Leser mit {browsers} Browsern"
  ],
  reachNobody: ["Nobody yet: add a channel.", "Noch niemand: Füge einen Kanal hinzu."],
  reachWithout: [
    "{count} of the named users {count|has|have} no browser that it could go to.",
    "{count} der genannten Nutzer {count|hat|haben} keinen Browser, den sie erreicht."
  ],
  reachAt: ["As of {time}.", "Stand {time}."],
  reachDecided: [
    "Who gets it is decided when it is sent.",
    "Wer sie bekommt, entscheidet sich beim Senden."
  ],
  counting: ["Counting readers …", "Leser werden gezählt …"],
  footReaders: ["{people} {count|reader|readers}", "{people} {count|Leser|Leser}"],

  // When.
  when: ["When", "Wann"],
  whenNow: ["Now", "Jetzt"],
  whenAt: ["At a time", "Zu einer Zeit"],
  whenNowHint: [
    "Ten seconds after you press the button on the next screen.",
    "Zehn Sekunden, nachdem du auf der nächsten Seite gedrückt hast."
  ],
  time: ["Day and time", "Tag und Uhrzeit"],
  timeZone: ["In your zone: {zone}", "In deiner Zeitzone: {zone}"],
  timeOver: ["this time is over", "diese Zeit ist vorbei"],
  timeTwice: [
    "Clocks go back then: this hour comes twice. Which one?",
    "Dann wird die Uhr zurückgestellt: Diese Stunde kommt zweimal. Welche?"
  ],
  timeWithZone: ["{time}", "{time}"],
  "time-unreadable": ["Choose a day and a time.", "Wähle Tag und Uhrzeit."],
  "time-past": [
    "This time is over. Choose a later one.",
    "Diese Zeit ist vorbei. Wähle eine spätere."
  ],
  "time-far": [
    "At most 30 days ahead. Choose an earlier time.",
    "Höchstens 30 Tage im Voraus. Wähle eine frühere Zeit."
  ],
  rate: ["Speed", "Tempo"],
  rateFree: ["As fast as possible", "So schnell wie möglich"],
  ratePushes: ["{rate} a second", "{rate} je Sekunde"],
  rateTakes: [
    "{browsers} {browsers|browser takes|browsers take} about {time}.",
    "{browsers} Browser brauchen etwa {time}."
  ],
  pauseWhen: ["Pause by itself when {share} fail", "Bei {share} Fehlern von selbst anhalten"],
  pauseHint: ["Once at least 100 were tried.", "Sobald mindestens 100 versucht wurden."],
  pauseFact: ["Pauses by itself", "Hält selbst an"],
  pauseAt: ["when {share} fail", "bei {share} Fehlern"],

  // Test.
  testHint: ["Sends what you see here, at once.", "Sendet sofort, was du hier siehst."],
  testUnfinished: [
    "A test needs a title and a whole link.",
    "Ein Test braucht einen Titel und einen ganzen Link."
  ],
  testSend: ["Send a test", "Test senden"],
  testTo: ["Send a test to {name}", "Test senden an {name}"],
  testNoDevice: [
    "No browser of {name} gets notifications. Turn them on on your site, then come back.",
    "Kein Browser von {name} bekommt Meldungen. Schalte sie auf eurer Website ein und komm zurück."
  ],
  deviceUnnamed: ["A browser at {service}", "Ein Browser bei {service}"],
  deviceStored: ["Since {day}", "Seit {day}"],
  "test-delivered": [
    "Its push service took it ({status}). It shows within seconds where the browser runs.",
    "Sein Push-Dienst nahm sie an ({status}). Läuft der Browser, erscheint sie in Sekunden."
  ],
  "test-retrying": [
    "Its push service did not take it yet: {reason}. It is tried again for a minute.",
    "Sein Push-Dienst nahm sie noch nicht an: {reason}. Es wird eine Minute lang versucht."
  ],
  "test-gone": [
    "This browser is gone: its push service ended it. Turn notifications on again there.",
    "Diesen Browser gibt es nicht mehr. Schalte dort die Meldungen wieder ein."
  ],
  "test-dead": [
    "Its push service refused it: {reason}.",
    "Sein Push-Dienst lehnte sie ab: {reason}."
  ],
  "test-expired": [
    "Within a minute its push service did not take it.",
    "Sein Push-Dienst nahm sie eine Minute lang nicht an."
  ],
  testNothingYet: [
    "Its push service has not answered yet. It is tried for a minute.",
    "Sein Push-Dienst hat noch nicht geantwortet. Es wird eine Minute lang versucht."
  ],

  // Review.
  toReview: ["Review", "Prüfen"],
  review: ["Review", "Prüfen"],
  reviewStored: ["As saved at {time}", "Wie gespeichert um {time}"],
  reviewFacts: ["What will be sent", "Was gesendet wird"],
  reviewEdit: ["Back to writing", "Zurück zum Schreiben"],
  warnUnjoined: [
    "Nobody has joined {names}. A typing error?",
    "Niemand ist {names} beigetreten. Ein Tippfehler?"
  ],
  reviewRefused: [
    "The service would not take it. Go back, and correct:",
    "Der Dienst nähme sie so nicht an. Geh zurück und korrigiere:"
  ],
  reviewChanged: [
    "This draft was changed by {name} at {time}, after you saw it.",
    "Dieser Entwurf wurde um {time} von {name} geändert, nachdem du ihn gesehen hast."
  ],
  reviewChangedTodo: [
    "Below is what is saved now. Nothing was sent.",
    "Unten steht, was jetzt gespeichert ist. Nichts wurde gesendet."
  ],
  send: ["Send", "Senden"],
  sendNow: ["Send to {count} {count|reader|readers} now", "Jetzt an {count} Leser senden"],
  sendAbout: ["Send to about {count} readers now", "Jetzt an etwa {count} Leser senden"],
  sendAt: [
    "Schedule for {count} {count|reader|readers}, {time}",
    "Für {count} Leser planen, {time}"
  ],
  sendHint: [
    "For {seconds} seconds you can take it back.",
    "{seconds} Sekunden lang kannst du sie zurückholen."
  ],
  sendAtHint: [
    "Until then you can change it, or take it back.",
    "Bis dahin kannst du sie ändern oder zurückholen."
  ],
  sendOff: [
    "It cannot be sent yet: see above.",
    "Sie kann noch nicht gesendet werden: siehe oben."
  ],
  leavingTitle: ["Goes out in", "Geht hinaus in"],
  leavingText: [
    "Nobody has got it yet. Taken back, it is a draft again.",
    "Noch hat sie niemand. Zurückgeholt ist sie wieder ein Entwurf."
  ],
  leavingClosed: [
    "It is sent also when you close this window.",
    "Sie wird auch gesendet, wenn du dieses Fenster schließt."
  ],
  leavingWatch: ["Do not wait here", "Nicht hier warten"],
  takeBack: ["Take it back", "Zurückholen"],

  // Errors: what is wrong, then what to do.
  "wrong-offline": ["The service does not answer.", "Der Dienst antwortet nicht."],
  "todo-offline": [
    "Check the network, then try again. Nothing was lost here.",
    "Prüfe das Netz, dann versuche es erneut. Hier ging nichts verloren."
  ],
  "wrong-timeout": [
    "The service did not answer within 20 seconds.",
    "Der Dienst hat 20 Sekunden lang nicht geantwortet."
  ],
  "todo-timeout": [
    "It may have done it all the same: look, then try again.",
    "Vielleicht hat er es trotzdem getan: Sieh nach, dann versuche es erneut."
  ],
  "wrong-unreadable": [
    "Something between you and the service answered in its place.",
    "Etwas zwischen dir und dem Dienst hat an seiner Stelle geantwortet."
  ],
  "todo-unreadable": [
    "Try again. If it stays, tell whoever runs the service.",
    "Versuche es erneut. Bleibt es so, sag es dem Betrieb des Dienstes."
  ],
  "wrong-unauthenticated": [
    "The service does not know your login any more.",
    "Der Dienst kennt deine Anmeldung nicht mehr."
  ],
  "todo-unauthenticated": ["Log in again.", "Melde dich erneut an."],
  "wrong-forbidden": ["You may not do this.", "Das darfst du nicht."],
  "todo-forbidden": [
    "Ask whoever runs the service for the right.",
    "Bitte den Betrieb des Dienstes um das Recht."
  ],
  "wrong-unknown-object": [
    "It does not exist, or you may not see it.",
    "Es gibt das nicht, oder du darfst es nicht sehen."
  ],
  "todo-unknown-object": [
    "Somebody may have removed it: go back to the list.",
    "Vielleicht hat es jemand entfernt: Geh zurück zur Liste."
  ],
  "wrong-impossible-state": ["It is too late: {state}", "Dafür ist es zu spät: {state}"],
  "todo-impossible-state": [
    "The page now shows what the service has.",
    "Die Seite zeigt jetzt, was der Dienst hat."
  ],
  "wrong-modified-meanwhile": [
    "Somebody changed it meanwhile.",
    "Jemand hat es inzwischen geändert."
  ],
  "todo-modified-meanwhile": [
    "Look at the newer one before you go on.",
    "Sieh dir die neuere Fassung an, bevor du weitermachst."
  ],
  "wrong-payload-too-large": [
    "The notification is larger than browsers take.",
    "Die Meldung ist größer, als Browser annehmen."
  ],
  "todo-payload-too-large": [
    "Shorten the text or the addresses.",
    "Kürze den Text oder die Adressen."
  ],
  "wrong-too-many-broadcast-bytes": [
    "You have sent as much as is allowed in an hour.",
    "Du hast so viel gesendet, wie in einer Stunde erlaubt ist."
  ],
  "todo-too-many-broadcast-bytes": ["Try again in {wait}.", "Versuche es in {wait} erneut."],
  "wrong-too-many-scheduled": [
    "Too many notifications wait for their time.",
    "Zu viele Meldungen warten auf ihre Zeit."
  ],
  "todo-too-many-scheduled": [
    "Send this one now, or unschedule others.",
    "Sende diese jetzt, oder nimm andere zurück."
  ],
  "wrong-no-room": ["The service has no room left.", "Der Dienst hat keinen Platz mehr."],
  "todo-no-room": [
    "Tell whoever runs it: nothing can be sent until then.",
    "Sag es dem Betrieb: Bis dahin kann nichts gesendet werden."
  ],
  "wrong-busy": ["The service is busy.", "Der Dienst ist ausgelastet."],
  "todo-busy": ["Try again in {wait}.", "Versuche es in {wait} erneut."],
  "wrong-refused": ["The service refused this: {message}", "Der Dienst lehnt das ab: {message}"],
  "todo-refused": ["Correct it, then try again.", "Korrigiere es, dann versuche es erneut."],
  "wrong-broken": ["The service has an error.", "Der Dienst hat einen Fehler."],
  "todo-broken": [
    "Try again. If it stays, tell whoever runs the service.",
    "Versuche es erneut. Bleibt es so, sag es dem Betrieb des Dienstes."
  ],
  "wrong-wrong-origin": [
    "The console runs at {message} only.",
    "Die Konsole läuft nur unter {message}."
  ],
  "todo-wrong-origin": [
    "Open it there, and tell whoever runs this site to deny /v1/console/ here.",
    "Öffne sie dort, und sag dem Betrieb dieser Website, dass /v1/console/ hier gesperrt gehört."
  ],
  "wrong-expired-link": ["This link is over.", "Dieser Link ist abgelaufen."],
  "todo-expired-link": [
    "It works for a minute: open the console anew from your site.",
    "Er gilt eine Minute: Öffne die Konsole neu von eurer Website."
  ],
  "wrong-used-link": ["This link was used before.", "Dieser Link wurde schon benutzt."],
  "todo-used-link": [
    "Each works once: open the console anew from your site.",
    "Jeder gilt einmal: Öffne die Konsole neu von eurer Website."
  ],
  "wrong-invalid-login": ["This link does not log in.", "Dieser Link meldet nicht an."],
  "todo-invalid-login": [
    "Open the console anew from your site.",
    "Öffne die Konsole neu von eurer Website."
  ],
  "wrong-login-not-begun": [
    "This login was not begun in this browser, or it took too long.",
    "Diese Anmeldung begann nicht in diesem Browser, oder sie dauerte zu lange."
  ],
  "todo-login-not-begun": [
    "Log in here. If it was by a mail, ask for another one.",
    "Melde dich hier an. Kam sie per E-Mail, fordere eine neue an."
  ],
  "wrong-another-user": [
    "Somebody else has logged in meanwhile, so nothing was done.",
    "Inzwischen hat sich jemand anderes angemeldet, darum wurde nichts getan."
  ],
  "todo-another-user": [
    "Say who you are, then try again.",
    "Sag, wer du bist, und versuche es erneut."
  ],
  "wrong-bug": ["This page has an error: {message}", "Diese Seite hat einen Fehler: {message}"],
  "todo-bug": ["Load the page again.", "Lade die Seite neu."],

  // States, as one word and as the end of a sentence.
  "state-scheduled": ["Scheduled", "Geplant"],
  "state-running": ["Sending", "Wird gesendet"],
  "state-paused": ["Paused", "Angehalten"],
  "state-finished": ["Sent", "Gesendet"],
  "state-cancelled": ["Stopped", "Gestoppt"],
  "state-rejected": ["Not sent", "Nicht gesendet"],

  // Notifications.
  "tab-drafts": ["Drafts", "Entwürfe"],
  "tab-scheduled": ["Scheduled", "Geplant"],
  "tab-sending": ["Sending", "Läuft"],
  "tab-sent": ["Sent", "Gesendet"],
  "tab-stopped": ["Stopped", "Gestoppt"],
  "tab-tests": ["Tests", "Tests"],
  "empty-drafts": ["No drafts", "Keine Entwürfe"],
  "empty-drafts-text": [
    "What you write is saved here as you type, until you send it.",
    "Was du schreibst, liegt hier, bis du es sendest."
  ],
  "empty-scheduled": ["Nothing waits for its time", "Nichts wartet auf seine Zeit"],
  "empty-scheduled-text": [
    "A notification with a time stands here, and can be changed until it starts.",
    "Hier steht, was eine Zeit hat. Bis dahin lässt es sich ändern."
  ],
  "empty-sending": ["Nothing is being sent", "Gerade wird nichts gesendet"],
  "empty-sending-text": [
    "While a notification goes out, you can watch and stop it here.",
    "Während eine Meldung hinausgeht, kannst du hier zusehen und sie stoppen."
  ],
  "empty-sent": ["Nothing was sent yet", "Noch wurde nichts gesendet"],
  "empty-sent-text": [
    "Here you will see what was sent, by whom, and how many it reached.",
    "Hier siehst du, was von wem gesendet wurde und wie viele es erreicht hat."
  ],
  "empty-stopped": ["Nothing was stopped", "Nichts wurde gestoppt"],
  "empty-stopped-text": [
    "What somebody stopped, or could not be sent, stands here with its reason.",
    "Was jemand gestoppt hat oder nicht zu senden war, steht hier mit dem Grund."
  ],
  "empty-tests": ["No tests", "Keine Tests"],
  "empty-tests-text": [
    "A test goes to your own devices or to a few colleagues, and counts in no report.",
    "Ein Test geht an deine Geräte oder wenige Kollegen und zählt in keinem Bericht."
  ],
  untitled: ["Without a title", "Ohne Titel"],
  test: ["Test", "Test"],
  toWhom: ["to {audience}", "an {audience}"],
  byWhom: ["by {person}", "von {person}"],
  onlyLook: ["you may only look", "du darfst nur zusehen"],
  you: ["you", "dir"],
  anOperator: ["the operator", "dem Betrieb"],
  itself: ["itself", "selbst"],
  server: ["the server {name}", "dem Server {name}"],
  somebody: ["somebody ({id})", "jemandem ({id})"],
  nobodyYet: ["nobody yet", "noch niemanden"],
  moreChannels: ["{count} more channels", "{count} weitere Kanäle"],
  namedReaders: [
    "{count} {count|reader|readers} by name",
    "{count} {count|benannten Leser|benannte Leser}"
  ],
  without: ["{whole}, without {count}", "{whole}, ohne {count}"],
  changedBy: ["changed by {person}, {time}", "geändert von {person}, {time}"],
  acceptedOf: [
    "Accepted for {delivered} of {accepted}",
    "Angenommen für {delivered} von {accepted}"
  ],
  nearlyDone: [
    "{share} done, {count} {count|is|are} tried again",
    "{share} erledigt, {count} {count|wird|werden} erneut versucht"
  ],
  calledOff: ["Called off before it began", "Vor dem Beginn abgesagt"],
  nobodyReached: ["There was nobody to send it to", "Es gab niemanden dafür"],
  startsAt: ["starts {time}", "Start {time}"],
  startsNow: ["starts now", "startet jetzt"],
  inTime: ["in {time}", "in {time}"],
  duplicate: ["Duplicate", "Duplizieren"],
  duplicateNamed: ["Duplicate {title}", "Duplizieren: {title}"],
  duplicateTitle: ["Duplicate “{title}”?", "„{title}“ duplizieren?"],
  duplicateDo: ["Duplicate without them", "Ohne sie duplizieren"],
  lacks: [
    "The draft will lack the {count} {count|reader|readers} by name, chosen or left out: the service shows them to {person} alone. Enter them again.",
    "Dem Entwurf {count|fehlt der|fehlen die} {count} {count|benannte|benannten} Leser, auch die ausgenommenen: Der Dienst zeigt sie nur {person}. Gib sie neu ein."
  ],
  hidden: [
    "It goes to readers by name, so what it says and to whom is shown to {person} alone.",
    "Sie geht an benannte Leser: Was sie sagt und an wen sie geht, zeigt der Dienst nur {person}."
  ],
  view: ["View", "Ansehen"],
  viewNamed: ["View {title}", "Ansehen: {title}"],
  edit: ["Edit", "Bearbeiten"],
  editNamed: ["Edit {title}", "Bearbeiten: {title}"],
  editTitle: ["Edit “{title}”", "„{title}“ bearbeiten"],
  editMore: [
    "The readers, the urgency, the name for the desk, how long it is kept, and whether it pauses by itself stay as they are. To change them, unschedule it: it becomes a draft.",
    "Empfänger, Dringlichkeit, Name für die Redaktion, Aufbewahrung und das Anhalten von selbst bleiben, wie sie sind. Um sie zu ändern, nimm die Planung zurück: Dann ist sie ein Entwurf."
  ],
  editLate: [
    "It is too late to edit it: it has begun, or was called off.",
    "Zum Bearbeiten ist es zu spät: Sie hat begonnen oder wurde abgesagt."
  ],
  editLateDraft: ["Make a draft of what I typed", "Entwurf aus meinem Text machen"],
  editKept: [
    "What you typed in Edit is not saved. It is in this tab only.",
    "Was du unter „Bearbeiten“ geschrieben hast, ist nicht gespeichert. Es ist nur in diesem Tab."
  ],
  editKeptOpen: ["Back to what I typed", "Zurück zu meinem Text"],
  editSame: ["Nothing changed yet", "Noch nichts geändert"],
  editChanged: [
    "Not saved: until then it starts as it was",
    "Nicht gespeichert: Bis dahin startet sie, wie sie war"
  ],
  editDo: ["Save the change", "Änderung speichern"],
  editTheirs: [
    "Somebody else changed this notification at {time}.",
    "Jemand anders hat diese Meldung um {time} geändert."
  ],
  editTheirsFoot: [
    "Not saved: choose one of the two forms first",
    "Nicht gespeichert: Wähle erst eine der beiden Fassungen"
  ],
  title: ["Title", "Titel"],
  text: ["Text", "Text"],
  unschedule: ["Unschedule", "Planung zurücknehmen"],
  unscheduleNamed: ["Unschedule {title}", "Planung zurücknehmen: {title}"],
  unscheduleTitle: ["Unschedule “{title}”?", "Planung von „{title}“ zurücknehmen?"],
  unscheduleText: ["It will not be sent.", "Sie wird nicht gesendet."],
  unscheduleDraft: [
    "Its content becomes a draft, which opens next.",
    "Ihr Inhalt wird ein Entwurf, der sich gleich öffnet."
  ],
  unscheduleDo: ["Unschedule, open the draft", "Zurücknehmen, Entwurf öffnen"],
  delete: ["Delete", "Löschen"],
  deleteNamed: ["Delete {title}", "Löschen: {title}"],
  deleteTitle: ["Delete “{title}”?", "„{title}“ löschen?"],
  deleteText: ["Nobody can bring the draft back.", "Niemand kann den Entwurf zurückholen."],
  keep: ["Keep it", "Behalten"],
  attention: ["Needs a look", "Das solltest du ansehen"],
  dismissNamed: ["Dismiss {title}", "Ausblenden: {title}"],
  lookRejected: ["was not sent: {reason}", "wurde nicht gesendet: {reason}"],
  lookPaused: [
    "paused by itself: {failed} of {attempted} pushes failed",
    "hat selbst angehalten: {failed} von {attempted} Pushes schlugen fehl"
  ],
  lookExpired: [
    "was paused until its life ended: {count} {count|push was|pushes were} never sent",
    "war angehalten, bis sie ablief: {count} {count|Push wurde|Pushes wurden} nie gesendet"
  ],
  lookFailed: [
    "could not be delivered to {count} of {accepted} browsers",
    "war an {count} von {accepted} Browsern nicht zustellbar"
  ],

  // One broadcast: sending, and its report.
  "wrong-stream-broken": [
    "The live view lost the service.",
    "Die Live-Ansicht hat den Dienst verloren."
  ],
  "todo-stream-broken": [
    "It tries again by itself. The sending goes on without it.",
    "Sie versucht es von selbst wieder. Das Senden geht ohne sie weiter."
  ],
  stop: ["Stop", "Stopp"],
  stopNamed: ["{label}: {title}", "{label}: {title}"],
  stopTrying: ["Stop trying", "Nicht weiter versuchen"],
  pause: ["Pause", "Anhalten"],
  goOn: ["Go on", "Weiter"],
  correctAndSend: ["Correct and send", "Korrigieren und senden"],
  correctReplaces: [
    "Opens a draft with the same content and readers. It replaces the first one on the {count} {count|browser|browsers} that have it.",
    "Öffnet einen Entwurf mit demselben Inhalt und denselben Lesern. Er ersetzt die erste auf den {count} {count|Browser|Browsern}, die sie haben."
  ],
  correctBeside: [
    "Opens a draft with the same content and readers. The {count} {count|browser|browsers} that have the first one will show both, since it had no tag.",
    "Öffnet einen Entwurf mit demselben Inhalt und denselben Lesern. Die {count} {count|Browser|Browser} mit der ersten zeigen beide, denn sie hatte kein „tag“."
  ],
  onlyLookText: [
    "You may only look: it goes to channels on which you may not publish.",
    "Du darfst nur zusehen: Sie geht an Kanäle, auf denen du nicht veröffentlichen darfst."
  ],
  now: ["Now", "Jetzt"],
  live: ["Live", "Live"],
  pushesASecond: ["Pushes a second", "Pushes je Sekunde"],
  rateSentence: [
    "{now} pushes a second now, at most {most}.",
    "Jetzt {now} Pushes je Sekunde, höchstens {most}."
  ],
  whatBecame: ["What became of them", "Was aus ihnen wurde"],
  becameSentence: [
    "{delivered} of {all} pushes accepted: {share}.",
    "{delivered} von {all} Pushes angenommen: {share}."
  ],
  notReached: ["Not reached", "Nicht erreicht"],
  asTable: ["As a table", "Als Tabelle"],
  timeLabel: ["Time", "Zeit"],
  whatWasSaid: ["What it says", "Was sie sagt"],
  deskName: ["Name", "Name"],
  toWhomLabel: ["To", "An"],
  byWhomLabel: ["By", "Von"],
  whenLabel: ["When", "Wann"],
  linkLabel: ["Opens", "Öffnet"],
  speedLabel: ["Speed", "Tempo"],
  speed: [
    "at most {rate} {rate|push|pushes} a second",
    "höchstens {rate} {rate|Push|Pushes} je Sekunde"
  ],
  redrivesLabel: ["Sends again", "Wiederholt"],
  numberLabel: ["Number", "Nummer"],
  "backTo-drafts": ["All drafts", "Alle Entwürfe"],
  "backTo-scheduled": ["All that is scheduled", "Alle geplanten"],
  "backTo-sending": ["All that is being sent", "Alle laufenden"],
  "backTo-sent": ["All that was sent", "Alle gesendeten"],
  "backTo-stopped": ["All that was stopped", "Alle gestoppten"],
  "backTo-tests": ["All tests", "Alle Tests"],

  sayScheduled: ["Starts in {wait}: {time}.", "Startet in {wait}: {time}."],
  sayPlanning: ["Finding the readers …", "Leser werden ermittelt …"],
  sayRunning: [
    "Accepted for {delivered} of {accepted}. {count} {count|waits|wait}.",
    "Angenommen für {delivered} von {accepted}. {count} {count|wartet|warten}."
  ],
  sayRunningAgain: [
    "Accepted for {delivered} of {accepted}. {count} {count|waits|wait}, {again} {again|is|are} tried again.",
    "Angenommen für {delivered} von {accepted}. {count} {count|wartet|warten}, {again} {again|wird|werden} erneut versucht."
  ],
  sayNearly: [
    "{share} done: accepted for {delivered} of {accepted}. {count} {count|is|are} tried again until {until}.",
    "{share} erledigt: angenommen für {delivered} von {accepted}. {count} {count|wird|werden} bis {until} erneut versucht."
  ],
  sayNearlyWhy: [
    "{share} done: accepted for {delivered} of {accepted}. {count} {count|is|are} tried again until {until}: {why}.",
    "{share} erledigt: angenommen für {delivered} von {accepted}. {count} {count|wird|werden} bis {until} erneut versucht: {why}."
  ],
  sayPausedBy: ["Paused by {person}.", "Angehalten von {person}."],
  sayPausedItself: [
    "Paused by itself: {failed} of {attempted} pushes failed.",
    "Hat selbst angehalten: {failed} von {attempted} Pushes schlugen fehl."
  ],
  sayPausedRest: [
    "{count} {count|waits|wait} until {until}. When it goes on, nobody gets it twice.",
    "{count} {count|wartet|warten} bis {until}. Geht es weiter, bekommt sie niemand doppelt."
  ],
  sayStopping: [
    "{count} {count|is|are} still under way.",
    "{count} {count|ist|sind} noch unterwegs."
  ],
  sayCalledOff: [
    "Called off by {person} before it went to anybody.",
    "Abgesagt von {person}, bevor sie an jemanden ging."
  ],
  sayStopped: [
    "Stopped by {person}. Accepted for {delivered}, {count} will never get it.",
    "Gestoppt von {person}. Angenommen für {delivered}, {count} {count|bekommt|bekommen} sie nie."
  ],
  sayDone: [
    "Done. Accepted for {delivered} of {accepted}.",
    "Fertig. Angenommen für {delivered} von {accepted}."
  ],
  sayNobody: [
    "Done. There was nobody to send it to.",
    "Fertig. Es gab niemanden, an den sie ging."
  ],
  sayRejected: ["Not sent: {reason}", "Nicht gesendet: {reason}"],

  report: ["Report", "Bericht"],
  csv: ["Pushes as CSV", "Pushes als CSV"],
  csvRows: ["{count} {count|row|rows} read …", "{count} {count|Zeile|Zeilen} gelesen …"],
  csvCut: [
    "The file has the first 200,000 rows. Whoever runs the service can get all from the API.",
    "Die Datei hat die ersten 200.000 Zeilen. Der Betrieb des Dienstes bekommt alle aus der API."
  ],
  unreachable: ["Unreachable", "Nicht erreichbar"],
  stillOpen: ["Still open", "Noch offen"],
  stillOpenNote: ["wait, or are tried again", "warten oder werden erneut versucht"],
  neverGet: ["will never get it", "bekommen sie nie"],
  shareOf: ["{share} of {count}", "{share} von {count}"],
  span: [
    "First accepted: {first}. Last: {time} later.",
    "Zuerst angenommen: {first}. Zuletzt: {time} später."
  ],
  noneDelivered: ["None was accepted so far.", "Bisher wurde keine angenommen."],
  acceptedNote: [
    "Accepted: a push service took it. It does so for browsers that are off, too.",
    "Angenommen: Ein Push-Dienst hat sie genommen, auch für Browser, die aus sind."
  ],
  overTime: [
    "Over time, by {minutes|minute|steps of minutes}",
    "Im Lauf der Zeit, je {minutes|Minute|mehrere Minuten}"
  ],
  overTimeSentence: [
    "Most pushes ended at {time}: {count}. {points} {points|point|points} in all.",
    "Die meisten Pushes endeten um {time}: {count}. Insgesamt {points} {points|Punkt|Punkte}."
  ],
  whyNot: ["Why not accepted", "Warum nicht angenommen"],
  reasonUntil: ["{why}: tried again until {until}", "{why}: wird bis {until} erneut versucht"],
  reasonLabel: ["Reason", "Grund"],
  pushes: ["Pushes", "Pushes"],
  share: ["Share", "Anteil"],
  byPushService: ["By push service", "Nach Push-Dienst"],
  pushService: ["Push service", "Push-Dienst"],
  byLanguage: ["By language", "Nach Sprache"],
  everybodyElse: ["Everybody else", "Alle anderen"],
  "push-service-google": ["Google (Chrome and others)", "Google (Chrome und andere)"],
  "push-service-mozilla": ["Mozilla (Firefox)", "Mozilla (Firefox)"],
  "push-service-apple": ["Apple (Safari)", "Apple (Safari)"],
  "push-service-microsoft": ["Microsoft (Edge)", "Microsoft (Edge)"],
  "push-service-other": ["Others", "Andere"],

  "outcome-delivered": ["Accepted", "Angenommen"],
  "outcome-retrying": ["Tried again", "Erneut versucht"],
  "outcome-expired": ["Expired", "Abgelaufen"],
  "outcome-dead": ["Given up", "Aufgegeben"],
  "outcome-gone": ["Gone", "Fort"],
  "outcome-cancelled": ["Stopped", "Gestoppt"],
  "outcome-waiting": ["Waiting", "Wartet"],

  reasonAfter: ["{first}, after: {last}", "{first}, nach: {last}"],
  "reason-accepted": ["accepted", "angenommen"],
  "reason-gone": ["the browser unsubscribed", "der Browser hat sich abgemeldet"],
  "reason-invalid-key": [
    "the browser’s keys cannot be used",
    "die Schlüssel des Browsers sind unbrauchbar"
  ],
  "reason-key-mismatch": [
    "the browser subscribed with another key",
    "der Browser hat sich mit anderem Schlüssel angemeldet"
  ],
  "reason-left": ["the reader left meanwhile", "der Leser ist inzwischen gegangen"],
  "reason-moved": [
    "the browser belongs to somebody else now",
    "der Browser gehört jetzt jemand anderem"
  ],
  "reason-redirect": ["the push service has moved", "der Push-Dienst ist umgezogen"],
  "reason-too-large": ["too large for this browser", "zu groß für diesen Browser"],
  "reason-bad-topic": ["the push service refuses the topic", "der Push-Dienst lehnt das Thema ab"],
  "reason-bad-ttl": [
    "the push service refuses the expiry",
    "der Push-Dienst lehnt die Gültigkeit ab"
  ],
  "reason-refused": ["the push service refuses the push", "der Push-Dienst lehnt den Push ab"],
  "reason-unexpected": [
    "the push service gave an unknown answer",
    "der Push-Dienst gab eine unbekannte Antwort"
  ],
  "reason-endpoint-not-allowed": [
    "the settings do not allow this push service",
    "die Einstellungen erlauben diesen Push-Dienst nicht"
  ],
  "reason-key-retired": ["its key was retired", "sein Schlüssel wurde ausgemustert"],
  "reason-suspended": ["the browser is suspended", "der Browser ist gesperrt"],
  "reason-internal": ["an error of the service", "ein Fehler des Dienstes"],
  "reason-expired": ["its time was over", "ihre Zeit war vorbei"],
  "reason-attempts-used-up": ["tried as often as allowed", "so oft versucht wie erlaubt"],
  "reason-cancelled": ["stopped before", "vorher gestoppt"],
  "reason-throttled": [
    "the push service wants fewer pushes",
    "der Push-Dienst will weniger Pushes"
  ],
  "reason-dropped": ["the push service dropped it", "der Push-Dienst hat ihn verworfen"],
  "reason-server-error": ["the push service has an error", "der Push-Dienst hat einen Fehler"],
  "reason-timeout": ["the push service does not answer", "der Push-Dienst antwortet nicht"],
  "reason-connection-refused": [
    "the push service takes no connections",
    "der Push-Dienst nimmt keine Verbindungen an"
  ],
  "reason-reset": ["the connection broke", "die Verbindung brach ab"],
  "reason-dns": [
    "the push service’s name cannot be looked up",
    "der Name des Push-Dienstes lässt sich nicht auflösen"
  ],
  "reason-unknown-host": ["the push service does not exist", "den Push-Dienst gibt es nicht"],
  "reason-address-not-allowed": [
    "the push service’s address is private",
    "die Adresse des Push-Dienstes ist privat"
  ],
  "reason-tls": [
    "the push service’s certificate is refused",
    "das Zertifikat des Push-Dienstes wird abgelehnt"
  ],
  "reason-unreachable": [
    "the push service cannot be reached",
    "der Push-Dienst ist nicht erreichbar"
  ],
  "reason-network": ["the network failed", "das Netz fiel aus"],
  "reason-proxy": ["the proxy of the service failed", "der Proxy des Dienstes fiel aus"],
  "reason-excessive": ["the push service sent too much", "der Push-Dienst hat zu viel gesendet"],
  "reason-encryption": ["the service could not encrypt", "der Dienst konnte nicht verschlüsseln"],
  "reason-credentials": [
    "the push service refuses our key",
    "der Push-Dienst lehnt unseren Schlüssel ab"
  ],
  "reason-breaker-open": [
    "the push service refuses our key",
    "der Push-Dienst lehnt unseren Schlüssel ab"
  ],
  "reason-key-unknown": ["keys are being changed", "Schlüssel werden gewechselt"],
  "reason-push-service-slow": ["the push service is slow", "der Push-Dienst ist langsam"],
  "reason-push-service-throttled": [
    "the push service asked for a break",
    "der Push-Dienst bat um eine Pause"
  ],
  "reason-mass-gone": [
    "unusually many browsers are said to be gone",
    "ungewöhnlich viele Browser gelten als fort"
  ],
  "reason-other": ["other reasons", "andere Gründe"]
} as const satisfies Readonly<Record<string, readonly [english: string, german: string]>>
