// The texts of "Try it", apart from those that a console outside development loads.
import { textsOf } from "../../words/language.ts"

const texts = {
  tryTitle: ["See a push", "Einen Push sehen"],
  tryLead: [
    "Press, allow notifications, send: this page is a small site with client.js and worker.js.",
    "Drücken, Mitteilungen erlauben, senden: Diese Seite ist eine kleine Website mit client.js und worker.js."
  ],
  tryThisBrowser: ["This browser", "Dieser Browser"],
  tryNotifyMe: ["Notify me", "Benachrichtige mich"],
  trySend: ["Send a push", "Einen Push senden"],
  tryWrite: ["Write one", "Eine schreiben"],
  tryStop: ["Stop notifying me", "Nicht mehr benachrichtigen"],
  tryHello: ["Hello", "Hallo"],
  tryHelloText: ["from you", "von dir"],
  tryStillWaiting: [
    "The push service has not answered yet, for {seconds} s …",
    "Der Push-Dienst hat noch nicht geantwortet, seit {seconds} s …"
  ],
  tryFailed: ["Failed. {why}", "Misslungen. {why}"],
  tryPush: ["The push is {outcome}: {why}.", "Der Push ist {outcome}: {why}."],
  tryAnswered: ["its push service answered {status}", "sein Push-Dienst antwortete {status}"],
  tryLater: ["Later once more …", "Später noch einmal …"],
  tryRemoved: ["The service removed it.", "Der Dienst hat ihn entfernt."],
  trySubscribedAnew: [
    "The client has subscribed this browser anew.",
    "Der Client hat diesen Browser neu angemeldet."
  ],
  tryUnknownBrowser: [
    "The service does not know this browser.",
    "Der Dienst kennt diesen Browser nicht."
  ],
  tryWaiting: ["Broadcast: waiting", "Broadcast: wartet"],
  tryCounts: ["Broadcast {id}: {counts}.", "Broadcast {id}: {counts}."],
  tryNobody: ["nobody to send it to", "niemand zum Senden"],
  "try-delivered": ["delivered", "zugestellt"],
  "try-retrying": ["retrying", "wird erneut versucht"],
  "try-expired": ["expired", "abgelaufen"],
  "try-dead": ["dead", "aufgegeben"],
  "try-gone": ["gone", "fort"],
  "try-cancelled": ["cancelled", "gestoppt"],
  "try-waiting": ["waiting", "wartet"],
  tryChannels: ["Channels", "Kanäle"],
  tryChannelsText: [
    "A user joins channels, on all devices at once.",
    "Ein Nutzer tritt Kanälen bei, auf allen Geräten zugleich."
  ],
  tryNone: ["None yet.", "Noch keine."],
  tryChannel: ["Channel", "Kanal"],
  tryToChannel: ["To channel", "An Kanal"],
  tryJoin: ["Join", "Beitreten"],
  tryJoined: ["You joined {name}.", "Du bist {name} beigetreten."],
  tryLeave: ["Leave", "Verlassen"],
  tryLeaveNamed: ["Leave {name}", "Verlassen: {name}"],
  tryLeft: ["You left {name}.", "Du hast {name} verlassen."],
  tryPublish: ["Publish", "Veröffentlichen"],
  tryDevices: ["My devices", "Meine Geräte"],
  tryNoDevices: [
    "None: no browser of yours gets pushes.",
    "Keine: Kein Browser von dir bekommt Pushes."
  ],
  tryMadeUp: ["A made-up browser", "Ein erfundener Browser"],
  tryBrowserAt: ["A browser at {host}", "Ein Browser bei {host}"],
  trySince: ["since {time}", "seit {time}"],
  trySendNamed: ["Send a push: {name}", "Einen Push senden: {name}"],
  tryRemove: ["Remove", "Entfernen"],
  tryRemoveNamed: ["Remove: {name}", "Entfernen: {name}"],
  tryForgot: ["The service forgot it.", "Der Dienst hat ihn vergessen."],
  tryBreaks: ["Break something", "Etwas kaputt machen"],
  tryBreaksText: [
    "Break it, load the page again, and see what the client mends.",
    "Mach es kaputt, lade die Seite neu und sieh, was der Client heilt."
  ],
  tryReload: ["Load the page again", "Seite neu laden"],
  tryNotSubscribed: [
    "This browser is not subscribed: press “Notify me”.",
    "Dieser Browser ist nicht angemeldet: Drücke „Benachrichtige mich“."
  ],
  tryNoWorker: [
    "There is no worker: load the page again.",
    "Es gibt keinen Worker: Lade die Seite neu."
  ],
  "tryDid-unsubscribe": [
    "Unsubscribed. Now press “Send a push” above.",
    "Abgemeldet. Drücke jetzt oben „Einen Push senden“."
  ],
  "tryDid-key": [
    "Subscribed with another key. Now load the page again.",
    "Mit anderem Schlüssel angemeldet. Lade jetzt die Seite neu."
  ],
  "tryDid-worker": [
    "The worker is gone. Now load the page again.",
    "Der Worker ist weg. Lade jetzt die Seite neu."
  ],
  "tryBreak-unsubscribe": [
    "Unsubscribe behind the server’s back",
    "Hinter dem Rücken des Servers abmelden"
  ],
  "tryBreakText-unsubscribe": [
    "As a browser does that clears its data. The push service answers the next push 410, and the service forgets the subscription. This page then asks the client to check, which subscribes anew.",
    "Wie ein Browser, der seine Daten löscht. Der Push-Dienst beantwortet den nächsten Push mit 410, und der Dienst vergisst das Abonnement. Diese Seite lässt dann den Client prüfen, der es neu anlegt."
  ],
  "tryBreak-key": ["Subscribe with another VAPID key", "Mit anderem VAPID-Schlüssel anmelden"],
  "tryBreakText-key": [
    "As another push server would. When the page is loaded again, the client finds a key that is not the service’s, and takes a new subscription in its place.",
    "Wie ein anderer Push-Server. Wird die Seite neu geladen, findet der Client einen fremden Schlüssel und legt ein neues Abonnement an."
  ],
  "tryBreak-worker": ["Remove the worker", "Den Worker entfernen"],
  "tryBreakText-worker": [
    "The subscription goes with it. When the page is loaded again, both come back.",
    "Das Abonnement geht mit. Wird die Seite neu geladen, kommen beide zurück."
  ],
  "tryBreak-user": ["Let {other} log in, without a logout", "{other} anmelden, ohne Abmeldung"],
  "tryBreakText-user": [
    "The client unsubscribes first: no push of the first user is shown to the second. When the first one is back, pushes come again without a press.",
    "Der Client meldet zuerst ab: Kein Push der ersten Person zeigt sich der zweiten. Ist die erste zurück, kommen Pushes ohne Druck wieder."
  ],
  "tryBreak-permission": ["Take the permission", "Die Erlaubnis nehmen"],
  "tryBreakText-permission": [
    "A page cannot. You can: press the icon beside the address, and block notifications (denied), or remove the permission (lost). The state above follows at once.",
    "Das kann keine Seite, aber du: Drücke das Symbol neben der Adresse und blockiere Mitteilungen (denied) oder entferne die Erlaubnis (lost). Der Zustand oben folgt sofort."
  ],
  "tryBreak-gone": ["Send to a browser that is gone", "An einen verschwundenen Browser senden"],
  "tryBreakText-gone": [
    "A made-up browser, whose push service answers 410. The service removes it.",
    "Ein erfundener Browser, dessen Push-Dienst 410 antwortet. Der Dienst entfernt ihn."
  ],
  "tryBreak-throttled": ["Send where there are too many pushes", "Senden, wo zu viele Pushes sind"],
  "tryBreakText-throttled": [
    "A made-up browser, whose push service answers 429 for eight seconds. The service sends again after that.",
    "Ein erfundener Browser, dessen Push-Dienst acht Sekunden lang 429 antwortet. Danach sendet der Dienst erneut."
  ],
  tryUnderneath: ["Underneath", "Darunter"],
  tryUnderneathText: [
    "Requests, pushes and what became of them, the newest first.",
    "Anfragen, Pushes und was aus ihnen wurde, das Neueste zuerst."
  ],
  tryClear: ["Clear", "Leeren"]
} as const satisfies Readonly<Record<string, readonly [english: string, german: string]>>

export const { t: tt, tIf: ttIf } = textsOf(texts)
