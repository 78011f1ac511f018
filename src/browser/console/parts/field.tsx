// A field of a form: its label above it, then a counter, a hint, an error.
import { useId } from "preact/hooks"
import { number, t } from "../words/language.ts"

interface FieldProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  readonly type?: "text" | "email" | "password" | "url" | "number" | "datetime-local" | "search"
  /** Of this name is the element, for forms and tests. */
  readonly name?: string
  readonly isLong?: boolean
  readonly isRequired?: boolean
  readonly autocomplete?: string
  readonly placeholder?: string
  readonly hint?: string | undefined
  /** The fault of the value; stays until it is right. */
  readonly wrong?: string | undefined
  /** Counts characters as people do, and says when there are more than show. */
  readonly countTo?: number
  readonly lang?: string
  /** Values that the browser offers as one types. */
  readonly list?: ReadonlyArray<{ readonly value: string; readonly text: string }>
}

const segmenter = new Intl.Segmenter()
const lengthOf = (text: string): number => [...segmenter.segment(text)].length

export const Field = (props: FieldProps) => {
  const { countTo, hint, isLong, label, onInput, type = "text", value, wrong } = props
  const id = useId()
  const about = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ")
  const shared = {
    id,
    class: "input",
    value,
    name: props.name,
    lang: props.lang,
    required: props.isRequired,
    placeholder: props.placeholder,
    autocomplete: props.autocomplete,
    "aria-invalid": wrong !== undefined,
    "aria-describedby": about === "" ? undefined : about,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) =>
      onInput(event.currentTarget.value)
  }
  return (
    <div class="field">
      <div class="label">
        <label for={id}>{label}</label>
        {countTo !== undefined && <Counter count={lengthOf(value)} most={countTo} />}
      </div>
      {isLong ? (
        <textarea {...shared} rows={3} />
      ) : (
        // As a variable, or preact's types ask for the role of each type of input.
        <input {...shared} list={props.list && `${id}-list`} {...(Object({ type }) as object)} />
      )}
      {props.list && (
        <datalist id={`${id}-list`}>
          {props.list.map((each) => (
            <option key={each.value} value={each.value}>
              {each.text}
            </option>
          ))}
        </datalist>
      )}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {wrong && (
        <p class="wrong" id={`${id}-wrong`} role="alert">
          {wrong}
        </p>
      )}
    </div>
  )
}

const Counter = ({ count, most }: { readonly count: number; readonly most: number }) => (
  <span class={count > most ? "counter over" : "counter"}>
    {t("counted", { count: number(count), most: number(most) })}
  </span>
)
